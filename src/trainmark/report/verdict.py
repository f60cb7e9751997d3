"""The answer in a sentence a workload: how much faster, how sure, and does it learn the same."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.comparison import compare
from trainmark.analysis.results import Comparison, GroupResult, Learning, Speedup
from trainmark.record.caveats import Caveat
from trainmark.report.charts.chart import Work
from trainmark.report.labels import apart
from trainmark.report.table import Tone

_TONES: dict[str, Tone] = {"faster": "good", "slower": "bad", "same": "plain", "unclear": "doubtful"}


@dataclass(frozen=True)
class Verdict:
    """One sentence, and what a reader must be told with it."""

    text: str
    tone: Tone
    caveats: tuple[Caveat, ...]


def verdict(work: Work) -> Verdict:
    """Of what is fastest here: the device against the other one where two were measured, else against the reference."""
    measured = [side for side in work.sides if side.result.runs]
    workload = work.sides[0].result.key.workload
    if not measured:
        failed = sum(side.result.failed for side in work.sides)
        return Verdict(
            f"No run of {workload} was finished: {units.many(failed, 'run')} failed.", "bad", (Caveat.FAILED_RUNS,)
        )
    by_device = _by_device(work)
    pair = _fastest_pair(by_device) or _fastest_pair(work.comparison, work)
    if pair is None:
        return _alone(workload, work)
    these, those = pair
    here, there, how = apart(these.key, those.key)
    caveats = tuple(caveat for caveat in Caveat if caveat in {*these.caveats, *those.caveats})
    if Caveat.NOT_LEARNING in caveats:
        which = " and ".join(
            name for name, side in ((here, these), (there, those)) if Caveat.NOT_LEARNING in side.caveats
        )
        return Verdict(f"{which} did not learn {workload}{how}, so its speed says nothing.", "bad", caveats)
    speed = _speed(here, there, f"{workload}{how}", these.speedup)
    return Verdict(f"{speed}{_learning(these.learning)}.", _TONES[these.speedup.verdict], caveats)


def _by_device(work: Work) -> Comparison:
    return compare([record for side in work.sides for record in side.records], by="device")


def _fastest_pair(comparison: Comparison, work: Work | None = None) -> tuple[GroupResult, GroupResult] | None:
    """The group with the shortest epochs that is held against another one, and that one."""
    own = None if work is None else {id(side.result) for side in work.sides}
    held = [
        (group, comparison.groups[group.reference])
        for position, group in enumerate(comparison.groups)
        if group.reference not in (None, position) and group.speedup.ratio is not None
        and (own is None or id(group) in own)
    ]  # fmt: skip
    known = [(each, reference) for each, reference in held if each.epoch_seconds.median is not None]
    return min(known, key=lambda pair: pair[0].epoch_seconds.median or 0.0, default=None)


def _alone(workload: str, work: Work) -> Verdict:
    side = next(side for side in work.sides if side.result.runs)
    accuracy = side.result.test_accuracy
    learnt = "" if accuracy is None else f", and came to {units.percent(accuracy)} test accuracy"
    pace = units.rate(side.result.samples_per_second, "examples a second")
    others = " What else was measured can't be held against it." if len(work.sides) > 1 else ""
    text = f"{side.label} trained {workload} at {pace}{learnt}; there is nothing to compare it with.{others}"
    return Verdict(text, "plain", side.result.caveats)


def _speed(here: str, there: str, what: str, speedup: Speedup) -> str:
    ratio, low, high = speedup.ratio or 0.0, speedup.low, speedup.high
    if speedup.verdict == "slower":
        ratio, low, high = 1 / ratio, high and 1 / high, low and 1 / low
    interval = "" if low is None or high is None else f" [{units.significant(low)}, {units.significant(high)}]"
    if speedup.verdict in ("faster", "slower"):
        return f"{here} trains {what} {units.ratio(ratio)}{interval} {speedup.verdict} than {there}"
    if speedup.verdict == "same":
        return f"{here} trains {what} as fast as {there} does, {units.ratio(ratio)}{interval}"
    if interval:
        return f"Whether {here} trains {what} faster than {there} is not clear, {units.ratio(ratio)}{interval}"
    return f"{here} trained {what} {units.ratio(ratio)} as fast as {there}, in too few rounds to be sure"


def _learning(learning: Learning) -> str:
    if learning.difference is None:
        return "; what it learnt was not measured"
    if learning.verdict == "same":
        return ", and learns the same"
    points = f"{100 * abs(learning.difference):.2f} points of {(learning.quantity or 'accuracy').replace('_', ' ')}"
    where = "above" if learning.difference > 0 else "below"
    if learning.verdict == "differs":
        return f", but ends {points} {where} it"
    return f"; whether it learns the same is not clear ({points} {where} it)"
