"""What was seen of the steps of a command: their losses, and where their time goes."""

from __future__ import annotations

from typing import NamedTuple

from trainmark import units
from trainmark.record.observed import Observed

_LEAST_SHARE = 0.01
"""Smallest share of the time that a sentence names."""
_LARGE_SHARE = 0.05
"""Share of the time from which on a sentence says that steps include evaluation, or that time is
spent on what has no name."""
_AND_MORE = "evaluation and what follows"
"""An evaluation in a script with JAX: where it ends is often only known from the next step."""
_QUEUED = {
    "forward and loss",
    "backward",
    "optimizer",
    "passes without gradients and what follows",
    "jitted step",
}
"""Parts that are only queued for a GPU, which computes them later."""


_FROM = {"forward and loss", "evaluation", _AND_MORE, "passes without gradients and what follows"}
"""Parts of which only the beginning has a known line."""


class Part(NamedTuple):
    """A part of the time of steps.

    Args:
        name: what is done.
        share: its share of the time.
        place: where, as ``file:line``; empty if unknown.
    """

    name: str
    share: float
    place: str


def parts(seen: Observed) -> list[Part]:
    """Return the observed parts of the time of all steps and evaluations.

    What is queued for a GPU is left out; the script waits for it where it reads results.
    """
    whole = seen.all_seconds
    reads = "waiting for the GPU" if seen.on_gpu else "reading results"
    evaluation = _AND_MORE if seen.framework == "jax" else "evaluation"
    observed = (
        ("loader wait", seen.loader_wait_seconds, "loading loader"),
        ("copies", seen.copy_seconds, ""),
        ("forward and loss", seen.forward_seconds, "forward"),
        ("backward", seen.backward_seconds, "backward"),
        ("optimizer", seen.optimizer_seconds, "optimizer_step optimizer"),
        (reads, seen.sync_seconds, ""),
        ("saving", seen.saving_seconds, "save"),
        (evaluation, seen.evaluation_seconds, "evaluation"),
        ("passes without gradients and what follows", seen.no_grad_seconds, "no_grad"),
        ("jitted step", _seconds_of_calls(seen), "step"),
        ("outside of the jitted step", seconds_between(seen), ""),
        ("compiling", seen.compile_seconds, "compile"),
    )
    return [
        Part(name, seconds / whole, _places(seen, place))
        for name, seconds, place in observed
        if seconds is not None and whole > 0 and not (seen.on_gpu and name in _QUEUED)
    ]


def _places(seen: Observed, names: str) -> str:
    """Return where something happens in a step, if that is known; it may be on several lines.

    Args:
        seen: what was observed.
        names: names of places; the first one that is known counts.
    """
    return next(filter(None, (_lines(seen, name) for name in names.split())), "")


def _lines(seen: Observed, name: str) -> str:
    """Return the lines of a place, with those of further ones like it."""
    further = f"{name}_"
    found = [
        place
        for each, place in seen.places.items()
        if each == name or (each.startswith(further) and each[len(further) :].isdigit())
    ]
    return ", ".join(found)


def own_steps(seen: Observed) -> list[str]:
    """Return what to say about the steps of a single command, the most important first.

    Args:
        seen: what was observed.
    """
    sentences: list[str] = []
    if len(seen.training_starts) > 1:
        sentences.append(f"{len(seen.training_starts):,} trainings in one process.")
    elif len(seen.losses) > 1:
        start = units.loss(seen.losses[0])
        end = units.loss(seen.losses[-1])
        sentences.append(f"The first loss was {start}, the last one that was kept {end}.")
    if seen.ranks > 1:
        sentences.append(f"Examples and losses are those of rank 0 of {seen.ranks:,}.")
    evaluation = seen.evaluation_in_steps_seconds or 0.0
    if evaluation > 0 and evaluation >= _LARGE_SHARE * seen.seconds:
        sentences.append("The times of steps include evaluation, since it recurs every few steps.")
    of_time = where_time_goes(seen)
    if of_time:
        sentences.append(of_time)
    for name, why in seen.unknown.items():
        sentences.append(f"{name.replace('_', ' ').capitalize()}: unknown, since {why}.")
    return sentences


def where_time_goes(seen: Observed) -> str:
    """Return the sentence that names the parts of the time; empty if none is known."""
    known = parts(seen)
    named = [part for part in known if part.share >= _LEAST_SHARE]
    named.sort(key=lambda part: -part.share)
    if not named:
        return ""
    said = [*map(_words, named)]
    # Parts may overlap, so what they leave is a lower bound. What is queued for a GPU is not known.
    elsewhere = 1.0 - sum(part.share for part in known)
    if elsewhere >= _LARGE_SHARE and not seen.on_gpu:
        said.append(f"at least {units.percent(elsewhere, 0)} elsewhere")
    return f"Where the time goes: {', '.join(said)}."


def _seconds_of_calls(seen: Observed) -> float | None:
    """Return how long the calls of a jitted step took, without compiling; None if unknown."""
    if seen.between_seconds is None or not seen.between_seconds:
        return None
    others = (seen.between_seconds, seen.compile_seconds, seen.evaluation_in_steps_seconds)
    return max(seen.seconds - sum(each or 0.0 for each in others), 0.0)


def seconds_between(seen: Observed) -> float | None:
    """Return how long what has no other name took between jitted steps; None if unknown."""
    if seen.between_seconds is None:
        return None
    named = (
        seen.sync_seconds,
        seen.loader_wait_seconds,
        seen.copy_seconds,
        seen.saving_seconds,
        seen.no_grad_seconds,
    )
    return max(seen.between_seconds - sum(each or 0.0 for each in named), 0.0)


def _words(part: Part) -> str:
    begins = "from " if part.name in _FROM else ""
    where = f" ({begins}{part.place})" if part.place else ""
    return f"{part.name} {units.percent(part.share, 0)}{where}"
