"""What to say about the steps of a script with JAX.

Everything is observed, so no sentence promises a gain.
"""

from __future__ import annotations

from trainmark import units
from trainmark.record.observed import Observed
from trainmark.report.own_steps import seconds_between, where_time_goes

_LEAST_SHARE = 0.01
"""Smallest share of the time for which compiling is worth a sentence."""
_MUCH = 0.1
"""Smallest share of the time for which the time between steps is worth a sentence."""
_NEARLY_EVERY = 0.9
"""Share of the steps in which a line must read results, so that it does in nearly every step."""


def jax_steps(seen: Observed) -> list[str]:
    """Return what was observed, the most important first."""
    sentences = [
        where_time_goes(seen),
        _compiling(seen),
        *_not_jitted(seen),
        *_reads(seen),
        _between(seen),
    ]
    return [each for each in sentences if each]


def _compiling(seen: Observed) -> str:
    seconds = seen.compile_seconds or 0.0
    share = _share(seconds, seen)
    if share < _LEAST_SHARE:
        return ""
    took = f"which took {units.seconds(seconds)}, {units.percent(share, 0)} of the time"
    where = _in_brackets(seen, "compile")
    if not seen.step_compiles:
        return f"JAX compiled after the first step{where}, {took}."
    times = seen.step_compiles
    often = "once more" if times == 1 else f"{times:,} more times"
    return (
        f"JAX compiled the step {often} after the first step{where}, {took}. It does so for each "
        "new shape or type of an argument, such as a smaller last batch, and for each new function "
        "that is passed to jax.jit."
    )


def _not_jitted(seen: Observed) -> list[str]:
    sentences = []
    if "eager" in seen.places:
        place = seen.places["eager"]
        sentences.append(
            f"The gradients at {place} are computed outside of jax.jit, one operation at a time."
        )
    if "outside" in seen.places:
        place = seen.places["outside"]
        sentences.append(
            "The weights are changed or copied outside of jitted functions, one operation at a "
            f"time; their gradients are computed at {place}."
        )
    return sentences


def _reads(seen: Observed) -> list[str]:
    often = [
        read for read, steps in seen.step_reads.items() if steps >= _NEARLY_EVERY * (seen.steps - 1)
    ]
    return [
        f"{place} reads a result in nearly every step, by {call}. Python then waits for the step "
        "before it prepares the next one."
        for place, _, call in (read.rpartition(" ") for read in often)
    ]


def _between(seen: Observed) -> str:
    share = _share(seconds_between(seen) or 0.0, seen)
    if share < _MUCH:
        return ""
    return (
        f"{units.percent(share, 0)} of the time passes outside of the jitted step: in Python, "
        "also in that of libraries around jax.jit, and in operations that are not jitted."
    )


def _share(seconds: float, seen: Observed) -> float:
    return seconds / seen.all_seconds if seen.all_seconds > 0 else 0.0


def _in_brackets(seen: Observed, place: str) -> str:
    found = seen.places.get(place)
    return f" ({found})" if found else ""
