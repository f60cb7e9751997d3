"""The answer in one sentence per workload: how much faster, how certain, and learns the same?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.results import GroupResult, Learning, Speedup
from trainmark.record.caveats import Caveat
from trainmark.report.charts.chart import MeasuredSide, MeasuredWork
from trainmark.report.comparison_table import SPEED_TONES
from trainmark.report.labels import apart
from trainmark.report.metric_words import compared_words
from trainmark.report.table import Tone, interval

HARMLESS = frozenset(
    {
        Caveat.SHORT_ENERGY_WINDOW,
        Caveat.UNKNOWN_PEAK,
        Caveat.UNTESTED_VERSION,
        Caveat.TARGET_MISSED,
        Caveat.ODD_REPORTS,
        Caveat.LEFT_PROCESSES,
        Caveat.STARTED_FROM_RECORD,
        Caveat.DISTURBED,
        Caveat.FAILED_RUNS,
        Caveat.PARTIAL_DATASET,
        Caveat.SUBSTITUTED_DATASET,
        Caveat.RANDOM_DATA,
        Caveat.LEARNING_UNSEEN,
        Caveat.SHORT_FOR_COMPILING,
        Caveat.SHORTENED,
    }
)
"""Caveats that don't weaken a speed-up."""
_OF_EPOCHS = frozenset({Caveat.ONE_EPOCH, Caveat.WIDE_SPREAD})
"""Caveats of epoch times, on which a speed-up from slices doesn't depend."""


@dataclass(frozen=True)
class Verdict:
    """One sentence and its caveats; ``doubtful`` if one of them weakens it."""

    text: str
    tone: Tone
    caveats: tuple[Caveat, ...]


def verdict(work: MeasuredWork) -> Verdict:
    """Return the answer for ``work``.

    It is about the pair chosen by :mod:`~trainmark.analysis.answer`, or the first side alone if
    there is none.
    """
    pair = work.answer
    measured = [side for side in work.sides if side.result.runs]
    workload = work.sides[0].result.key.workload
    if not measured:
        failed = sum(side.result.failed for side in work.sides)
        text = f"No run of {workload} finished ({failed} tried)."
        return Verdict(text, "bad", (Caveat.FAILED_RUNS,))
    found = _alone(workload, measured) if pair is None else _of_pair(workload, *pair)
    caveats = {*found.caveats}
    if any(group.failed for group in pair or [measured[0].result]):
        caveats.add(Caveat.FAILED_RUNS)
    others = [side for side in work.sides if side.result not in (pair or ())]
    text = found.text + "".join(map(_lost, others))
    return Verdict(text, found.tone, tuple(caveat for caveat in Caveat if caveat in caveats))


def _lost(side: MeasuredSide) -> str:
    """Return a sentence about a side that has no result; empty if it has one."""
    result = side.result
    if not result.runs:
        return f" No run of {side.label} finished ({result.failed} tried)."
    if result.breaks:
        return f" No training on {side.label} was completed ({result.failed} tried)."
    return ""


def _of_pair(workload: str, these: GroupResult, those: GroupResult) -> Verdict:
    this, that, how = (name.removeprefix("on ") for name in apart(these.key, those.key))
    caveats = (*these.caveats, *those.caveats)
    sides = ((this, these), (that, those))
    lazy = " and ".join(name for name, side in sides if not side.learns)
    if lazy:
        text = f"{lazy}: some runs did not learn {workload}{how}; speeds are not compared."
        return Verdict(text, "bad", caveats)
    broken = " and ".join(name for name, side in sides if side.breaks)
    if broken:
        what = "run" if these.key.dataset is None else "training"
        text = f"{broken}: no {what} of {workload}{how} was completed; speeds are not compared."
        return Verdict(text, "bad", caveats)
    whole = ", from start to end" if these.speedup.of == "process" else ""
    harmless = HARMLESS | _OF_EPOCHS if these.speedup.of == "slice" else HARMLESS
    tone = SPEED_TONES[these.speedup.verdict] if harmless.issuperset(caveats) else "doubtful"
    disturbed = Caveat.TOO_DISTURBED in caveats
    unit = "" if _is_trained(these, those) else " per step"
    if Caveat.PER_PASS in caveats and these.speedup.of == "slice":
        unit = " per forward pass"
    accelerator = this if these.best_threads is None else that
    speed = _speed(this, that, these.speedup, unit, disturbed=disturbed)
    threads = _threads(these, those, accelerator)
    learning = _learning(these.learning)
    if these.metric is not None or those.metric is not None:
        learning = compared_words(these.learning, these, those)
    elif Caveat.RANDOM_DATA in caveats:
        learning = "; the data are random, so learning is not judged"
    elif these.learning.difference is None and Caveat.SHORTENED in caveats:
        learning = "; the time limit ended the training early, so learning is not judged"
    elif not _is_trained(these, those):
        learning = "; learning not judged yet"
    elif these.learning.difference is None and Caveat.LEARNING_UNSEEN in caveats:
        why = these.learning_unseen or those.learning_unseen or "the loss does not show it"
        learning = f"; learning is not judged: {why}; name a figure with --metric"
    advice = " Measure again when the machine is idle." if disturbed else ""
    return Verdict(f"{speed}{threads}{learning} ({workload}{how}{whole}).{advice}", tone, caveats)


def _threads(these: GroupResult, those: GroupResult, accelerator: str) -> str:
    """Return the number of threads of the CPU, if a search found it, next to an accelerator."""
    known = [side.best_threads for side in (these, those) if side.best_threads is not None]
    ratio = these.speedup.ratio
    if len(known) != 1 or ratio is None:
        return ""
    best = known[0]
    with_best = f", the CPU with its best number of threads ({best.chosen})"
    if best.chosen == best.default:
        return f"{with_best}, which is the default"
    of_accelerator = ratio if these.best_threads is None else 1 / ratio
    times = units.ratio(of_accelerator * best.slowdown)
    return (
        f"{with_best}; {accelerator} is about {times} as fast as the CPU with the default "
        f"({best.default})"
    )


def _is_trained(these: GroupResult, those: GroupResult) -> bool:
    """Whether both sides have a complete training; a command needs none."""
    is_command = these.key.dataset is None
    return is_command or (these.trainings > 0 and those.trainings > 0)


def _alone(workload: str, measured: Sequence[MeasuredSide]) -> Verdict:
    side = measured[0]
    accuracy = side.result.test_accuracy
    loss = side.result.test_loss
    learnt = "" if accuracy is None else f", and reached {units.percent(accuracy)} test accuracy"
    rate = side.result.samples_per_second
    seconds = side.result.process_seconds.median
    pace = f" at {units.rate(rate, 'examples/s')}" if rate is not None else ""
    if side.result.tokens:
        learnt = "" if loss is None else f", and reached a test loss of {units.loss(loss)}"
        pace = f" at {units.rate(side.result.tokens_per_second, 'tokens/s')}"
    if Caveat.RANDOM_DATA in side.result.caveats:
        learnt = " (random data)"
    elif Caveat.SHORTENED in side.result.caveats:
        learnt = " until the time limit, so learning is not judged"
    if rate is None and seconds is not None:
        pace = f" in {units.seconds(seconds)} from start to end"
    is_command = side.result.key.dataset is None
    alone = "" if is_command else "; there is nothing to compare it with"
    text = f"{side.label} trained {workload}{pace}{learnt}{alone}."
    if len(measured) > 1:
        text += " The other results can't be compared with it"
        if any(Caveat.UNEQUAL_WORK in each.result.caveats for each in measured):
            text += ", since a step does more on one side than on the other"
        text += "."
    return Verdict(text, "plain", side.result.caveats)


def _speed(this: str, that: str, speedup: Speedup, unit: str, *, disturbed: bool) -> str:
    """Return the part about speed; ``unit`` is empty, or what was compared instead of trainings."""
    ratio = speedup.ratio or 0.0
    low = speedup.low
    high = speedup.high
    if speedup.verdict == "slower":
        ratio, low, high = 1 / ratio, high and 1 / high, low and 1 / low
    times = f"{units.ratio(ratio)}{interval(low, high)}"
    if disturbed:
        return (
            f"No verdict, because other programs disturbed the machine: {this} and {that}, {times}"
        )
    if speedup.at_least is not None:
        bound = f"at least {units.ratio(speedup.at_least)} {speedup.verdict}{unit}"
        return f"{this} is {bound} than {that} ({units.ratio(ratio)} in two rounds)"
    if speedup.verdict in ("faster", "slower"):
        return f"{this} is {times} {speedup.verdict}{unit} than {that}"
    if speedup.verdict == "same":
        return f"{this} is as fast as {that}{unit}, {times}"
    if low is not None:
        return f"No clear difference{unit}: {this} and {that}, {times}"
    return f"{this} ran {times} as fast as {that}{unit}, in too few rounds for a verdict"


def _learning(learning: Learning) -> str:
    if learning.difference is None:
        return "; no accuracy to compare"
    if learning.verdict == "same":
        return "; both learn the same"
    if learning.low is None:
        return "; too few runs to compare learning"
    quantity = (learning.quantity or "accuracy").replace("_", " ")
    is_loss = quantity.endswith("loss")
    where = "higher" if (learning.difference > 0) is not is_loss else "lower"
    difference = abs(learning.difference)
    by = f"{difference:.4f}" if is_loss else f"{100 * difference:.2f} points"
    if learning.verdict == "differs":
        return f"; but its {quantity} is {by} {where}"
    shown = f" ({by} of {quantity} {where})" if difference >= 0.00005 else ""
    return f"; no clear difference in learning{shown}"
