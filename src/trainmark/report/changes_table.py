"""A table of what changes to a user's script give, and sentences about it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from trainmark import units
from trainmark.analysis.causes import Found
from trainmark.analysis.changes import SAMPLED, Curve, Finding
from trainmark.analysis.experiments import (
    EVERY_CHANGE,
    NOT_ENOUGH_TIME,
    experiment,
    words,
)
from trainmark.record.growth import Growth
from trainmark.record.observed import Observed
from trainmark.report.growth import growth_sentence
from trainmark.report.own_steps import parts
from trainmark.report.table import Cell, Field, Table, Tone, interval, table_of

_MOST_LINES = 3
"""Maximum number of slow lines that the last sentence names."""
_LEAST_SHARE = 0.1
"""Share of the time from which on a line counts as slow."""
_PORT_IN_USE = ("EADDRINUSE", "Address already in use", "address already in use")
"""In the error of a script that listens on a port on which another one listens."""
_MAY_HELP = 1.1
"""A change whose interval reaches above this is unclear; the others are not worth it."""
_MORE_MEMORY = 1.05
"""Multiple of the unchanged script's memory from which on the answer says it."""
_LEARNING: dict[Curve, str] = {
    "same": " and learns the same",
    "better": ", and the loss falls faster",
    "worse": ", but harms learning: the loss is higher",
    "unclear": "; the effect on learning is unclear",
    "unseen": "; learning is not judged",
}
_LARGER_BATCH: dict[Curve, str] = {
    "same": " per example, but learns no more in the same time",
    "better": " per example, and learns more in the same time",
    "worse": " per example, but learns less in the same time",
    "unclear": " per example; whether it learns more in the same time is unclear",
    "unseen": " per example; learning is not judged",
}


def changes_table(
    name: str,
    place: str,
    step_seconds: float,
    parts: Mapping[str, float],
    findings: Sequence[Finding],
    left_out: Mapping[str, str],
    sentences: Sequence[str],
) -> Table:
    """Return the table of the findings.

    Args:
        name: name of the script.
        place: the framework and the device.
        step_seconds: duration of a step of the unchanged script.
        parts: shares of its time.
        findings: the changes, one row each.
        left_out: why other changes have no row.
        sentences: what the answer says; the first one is the answer.
    """
    of_time = ", ".join(
        f"{what} {units.percent(share, 0)}" for what, share in parts.items() if share > 0.01
    )
    reasons = "; ".join(
        f"{change} ({why})" for change, why in left_out.items() if change != EVERY_CHANGE
    )
    return table_of(
        findings,
        (
            Field("change", _change),
            Field("speed-up", _speedup, "right"),
            Field("learning", _learning),
            Field("memory", _memory, "right", optional=True),
            Field("where", lambda each: each.place or "", optional=True),
            Field("description", _description, optional=True),
        ),
        title=name,
        conditions=(
            f"{place}, {units.seconds(step_seconds)} per step"
            + (f"; time: {of_time}" if of_time else ""),
        ),
        notes=(*sentences[1:], *((f"Not measured: {reasons}.",) if reasons else ())),
        answer=Cell(sentences[0]),
    )


def answers(
    findings: Sequence[Finding],
    stack: Sequence[Finding],
    lines: Mapping[str, float],
    left_out: Mapping[str, str] = MappingProxyType({}),
    *,
    causes: Sequence[Found] = (),
    inside: Mapping[str, float] = MappingProxyType({}),
    grows: Growth | None = None,
    grows_at: str | None = None,
    learning_unseen: str | None = None,
    interrupted: bool = False,
    is_queued: bool = False,
) -> list[str]:
    """Return what to do first, then the other sentences about the findings.

    A growth comes before everything else, since it makes all other figures depend on the step.

    Args:
        findings: what each change gives.
        stack: the first of several changes that are worth it together, then with the second one,
            and so on; empty if there are none.
        lines: share of the time of each line.
        left_out: why changes were not tried, or failed.
        causes: known causes of slow steps of which there is evidence.
        inside: share of the time of each function of a library that the slowest line calls.
        grows: by how much each step takes longer than the one before.
        grows_at: the line that most of this is due to.
        learning_unseen: why the losses do not show whether the script learns.
        interrupted: whether Ctrl-C has ended the measurements.
        is_queued: whether lines only queue their work, so that others wait for it.
    """
    winners = [each for each in findings if each.wins and each.fresh]
    unclear = [each for each in findings if not (each.wins or _is_idle(each))]
    uncertain = _names_with_times(unclear)
    noisy = f"Too noisy to tell (stop other programs, or increase --seconds): {uncertain}."
    together = stack[-1].change.split("+") if stack else []
    alone = [each for each in findings if each.change not in together]
    helpful = [each for each in alone if each.helps and (each.fresh or each.cause)]
    once = _names_with_times(
        each for each in alone if each.wins and not each.fresh and each not in helpful
    )
    unconfirmed = f"Measured only once, so not confirmed: {once}."
    late = sum(why.startswith(NOT_ENOUGH_TIME) for why in left_out.values())
    sentences = [_stacked(stack, findings)] if stack else []
    sentences += [_advice(each) for each in helpful]
    sentences += [_unmeasured(each, findings) for each in causes if _costs_unknown(each, findings)]
    if not sentences and once:
        sentences.append(unconfirmed)
    elif not sentences and unclear:
        sentences.append(noisy)
    elif not sentences and findings:
        untried = f", but {late} more had no time (increase --seconds)" if late else ""
        sentences.append(f"None of the changes tried makes this script clearly faster{untried}.")
    elif not sentences and interrupted:
        sentences.append("Interrupted before a change was measured.")
    elif not sentences:
        sentences.append(_nothing_measured(left_out))
    sentences += [
        f"{each.change} is {times(each)} faster{_learns(each)}."
        for each in winners
        if not each.helps
    ]
    if once and sentences[0] != unconfirmed:
        sentences.append(unconfirmed)
    if unclear and sentences[0] != noisy:
        sentences.append(noisy)
    idle = [each for each in findings if not each.wins and each not in unclear]
    no_use = _names(each for each in idle if each.kind != "diagnosis")
    if no_use:
        sentences.append(f"Not worth it: {no_use}.")
    cheap = _names(each for each in idle if each.kind == "diagnosis")
    if cheap:
        sentences.append(f"Not the bottleneck: {cheap}.")
    slow = [
        f"{place} {units.percent(share, 0)}"
        for place, share in lines.items()
        if share >= _LEAST_SHARE
    ]
    if learning_unseen is not None and any(each.learning == "unseen" for each in findings):
        sentences.append(f"Learning is not judged: {learning_unseen}.")
    if slow:
        waiting = ", with the time that they wait for work of earlier ones" if is_queued else ""
        sentences.append(f"Your slowest lines{waiting}: {', '.join(slow[:_MOST_LINES])}.")
        sentences += _inside(next(iter(lines)), inside)
    if grows is not None:
        sentences.insert(0, growth_sentence(grows, grows_at))
    return sentences


def _inside(line: str, inside: Mapping[str, float]) -> list[str]:
    """Return a sentence about what a line calls, if that takes long."""
    named = [
        f"{units.percent(share, 0)} in {function}"
        for function, share in inside.items()
        if share >= _LEAST_SHARE
    ]
    return [f"{line} calls a library: {'; '.join(named[:_MOST_LINES])}."] if named else []


def _nothing_measured(left_out: Mapping[str, str]) -> str:
    if EVERY_CHANGE in left_out:
        return f"No change was tried, since {left_out[EVERY_CHANGE]}."
    reasons = set(left_out.values())
    late = {reason for reason in reasons if reason.startswith(NOT_ENOUGH_TIME)}
    if late:
        return f"No change could be measured: {max(late)}."
    failed = [why for why in left_out.values() if "--only" not in why]
    if any(sign in why for why in failed for sign in _PORT_IN_USE):
        return (
            "No change could be measured: the script listens on a fixed port, so only one of it "
            "can run at a time."
        )
    if failed:
        ((why, _),) = Counter(failed).most_common(1)
        return f"No change could be measured: {why}."
    return "No change could be measured." if left_out else "No changes were tried."


def shares(observed: Observed) -> dict[str, float]:
    """Return the observed shares of the time, if they were not sampled; they may overlap."""
    return {part.name: part.share for part in parts(observed)}


def _advice(found: Finding) -> str:
    where = f" ({found.place})" if found.place else ""
    if found.cause is not None:
        return _cure(found, found.cause, where)
    text = words(experiment(found.change).advice, found.change).removesuffix(".")
    if found.kind == "diagnosis":
        if found.proof == SAMPLED:
            return f"{text}{where}. Without it, the script would be about {times(found)} faster."
        # Not "at most": a cure may also remove work around what the experiment left out. Without
        # evaluation, one script was 1.82 times as fast; with fewer evaluations, 2.07 times.
        return f"{text}{where}. Without this, the script was {times(found)} faster."
    return f"{text}{where}. This is {times(found)} faster{_learns(found)}."


def _stacked(stack: Sequence[Finding], findings: Sequence[Finding]) -> str:
    """Return several changes, what they give together, and what each adds to those before it."""
    whole = stack[-1]
    names = whole.change.split("+")
    places = {each.change: each.place for each in findings}
    advice = [
        words(experiment(name).advice, name).removesuffix(".")
        + (f" ({places[name]})" if places.get(name) else "")
        for name in names
    ]
    ratios = [each.speedup.value for each in stack]
    added = [later / earlier for earlier, later in itertools.pairwise(ratios)]
    adds = [f"{name} adds {gain:.2f}×" for name, gain in zip(names[1:], added, strict=True)]
    return (
        f"Make {len(names)} changes: {'; '.join(advice)}. Together, the script is {times(whole)} "
        f"faster{_learns(whole)}: {names[0]} alone gives {ratios[0]:.2f}×, {', '.join(adds)}."
    )


def _cure(found: Finding, cause: Found, where: str) -> str:
    """Return what is known of a cause, and what cures it."""
    if found.proof == SAMPLED:
        share = "" if cause.share is None else f": {units.percent(cause.share, 0)} of the time"
        promise = f" Without it, the script would be about {times(found)} faster."
        return f"{cause.seen}{where}{share}. {cause.cure}.{promise if cause.is_removed else ''}"
    advice = words(experiment(found.change).advice, found.change).removesuffix(".")
    once = "" if found.fresh else " (measured only once)"
    if found.kind == "diagnosis":
        return (
            f"{cause.seen}{where}. {advice}. Without this, the script was {times(found)} "
            f"faster{once}."
        )
    memory = ""
    if found.memory is not None and found.memory > _MORE_MEMORY:
        memory = f" It then takes {found.memory:.2f} times the memory."
    return (
        f"{cause.seen}{where}. {advice}. This is {times(found)} faster{_learns(found)}{once}."
        f"{memory}"
    )


def _costs_unknown(cause: Found, findings: Sequence[Finding]) -> bool:
    """Whether nothing shows what a cause costs."""
    about = [each for each in findings if each.cause is not None and each.cause.name == cause.name]
    return not any(each.wins or _is_idle(each) for each in about)


def _is_idle(found: Finding) -> bool:
    """Whether a change certainly gives little or nothing."""
    return not found.wins and (found.speedup.high or math.inf) <= _MAY_HELP


def _unmeasured(cause: Found, findings: Sequence[Finding]) -> str:
    """Return what is known of a cause that nothing shows the cost of."""
    where = f" ({cause.place})" if cause.place else ""
    tried = any(each.cause is not None and each.cause.name == cause.name for each in findings)
    why = "is too noisy to tell" if tried else "was not measured"
    return f"{cause.seen}{where}. {cause.cure}. What it costs {why}."


def _names(found: Iterable[Finding]) -> str:
    return ", ".join(map(_name, found))


def _names_with_times(found: Iterable[Finding]) -> str:
    return ", ".join(f"{_name(each)} {times(each)}" for each in found)


def _name(found: Finding) -> str:
    """Return the name of a change; that of larger batches would be taken for their size."""
    name, _, value = found.change.partition("=")
    return f"{found.change} ({value}× larger batches)" if name == "batch" else found.change


def _learns(found: Finding) -> str:
    return (_LARGER_BATCH if found.kind == "learning" else _LEARNING)[found.learning]


def times(found: Finding) -> str:
    """Return the speed-up with its interval."""
    return f"{found.speedup.value:.2f}×{interval(found.speedup.low, found.speedup.high)}"


def _change(found: Finding) -> Cell:
    return Cell(found.change, tone="strong" if found.wins else "plain")


def _speedup(found: Finding) -> Cell:
    if found.cause is not None and found.proof == SAMPLED and not found.cause.is_removed:
        return Cell(f"≤ {found.speedup.high:.2f}×", value=found.speedup.value)
    tone: Tone = "good" if found.wins and not found.harms else "plain"
    return Cell(times(found), tone=tone, value=found.speedup.value)


def _learning(found: Finding) -> Cell:
    if found.kind == "diagnosis":
        return Cell("diagnosis", tone="dim")
    if found.learning == "unseen":
        return Cell("not judged", tone="dim")
    return Cell(found.learning, tone="bad" if found.harms else "plain")


def _memory(found: Finding) -> Cell:
    return Cell("" if found.memory is None else f"{found.memory:.2f}×", value=found.memory)


def _description(found: Finding) -> Cell:
    if found.cause is not None and found.change == found.cause.name:
        return Cell(found.cause.seen, tone="dim")
    return Cell(words(experiment(found.change).does, found.change), tone="dim")
