"""Conditions of a table: shared ones go into its caption, the others become columns."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.efficiency import Efficiency
from trainmark.analysis.results import GroupResult
from trainmark.record.facts import Key


@dataclass(frozen=True)
class Condition:
    """One or two facts of a key, as shown in captions, columns and labels.

    Args:
        title: column title, if groups differ in it.
        words: its text; empty to show nothing.
        line: line of the caption.
        follows: facts that determine it, as the backend determines the version. It may then differ
            between groups and still be in the caption, once per value of the first fact; a label
            omits it if one of the facts differs.
        preposition: precedes it in a label.
    """

    title: str
    words: Callable[[Key], str]
    line: int = 0
    follows: tuple[str, ...] = ()
    preposition: str = ""

    def label(self, key: Key) -> str:
        """Return its text as a part of a label."""
        return f"{self.preposition} {self.words(key)}".strip()


def _data(key: Key) -> str:
    if key.dataset is None or key.train_examples is None:
        return ""
    test = f" and {key.test_examples:,} test" if key.test_examples else ""
    return f"{key.dataset}, {key.train_examples:,} training{test} examples"


def threads(key: Key) -> str:
    """Return the number of threads of the framework; empty for a command, where it is unknown."""
    if key.precision is None:
        return ""
    return "default threads" if key.threads is None else units.many(key.threads, "thread")


def _protocol(key: Key) -> str:
    if key.precision is None:
        return ""
    return "fresh weights" if key.protocol == "fresh" else key.protocol


def _cpu(key: Key) -> str:
    name = key.cpu or "CPU not known"
    return name if key.cores is None else f"{name}, {units.many(key.cores, 'core')}"


def _known(name: str, before: str = "") -> Callable[[Key], str]:
    """Return a function that gives a field of a key as text; empty if it is unknown.

    Args:
        name: the field.
        before: precedes a known value.
    """

    def words(key: Key) -> str:
        value = getattr(key, name)
        return f"{before}{value}" if value else ""

    return words


SIDE: dict[str, Callable[[Key], str]] = {
    name: _known(name) for name in ("backend", "style", "device")
}
"""Facts that every row of a table and every label shows."""


CONDITIONS = (
    Condition("dataset", _data),
    Condition("precision", _known("precision")),
    Condition("threads", threads),
    Condition("layout", _known("layout")),
    Condition("protocol", _protocol),
    Condition("weights", _known("weights_from", "weights from ")),
    Condition("machine", _known("machine"), 1, preposition="on"),
    Condition("CPU", _cpu, 1, ("machine",)),
    Condition("device name", _known("device_name"), 1, ("device",)),
    Condition("version", _known("version"), 2, ("backend", "python")),
    Condition("python", _known("python", "python "), 2),
    Condition("program", _known("program", "program "), 2, ("style",)),
    Condition("memory fraction", _known("memory_fraction", "memory fraction ")),
)
"""Every fact that separates groups is in one of these, or in ``SIDE``."""


def share_of_peak(known: Efficiency, mfu: float | None = None) -> str:
    """Return ``30.7 %``, or ``≤ 31 %``, rounded up, if a disturbed peak may be too low.

    Args:
        known: the efficiency.
        mfu: replaces its share, by another formula.
    """
    mfu = known.mfu if mfu is None else mfu
    return f"≤ {units.percent(mfu + 0.005, 0)}" if known.disturbed else units.percent(mfu, 1)


def when_measured(known: Efficiency) -> str:
    """Return ``measured on 2026-11-21 17:12 UTC``, and whether the peak was disturbed."""
    words = f"measured on {units.moment(known.measured_at)}" if known.measured_at else "measured"
    if not known.disturbed:
        return words
    return (
        f"{words} while other programs used the machine or the device, so the true peak may be "
        "higher"
    )


def split(
    groups: Sequence[GroupResult], shown: Container[str] = ()
) -> tuple[tuple[str, ...], tuple[Condition, ...]]:
    """Return the caption of a table of ``groups``, and the conditions that need a column in it.

    Args:
        shown: titles of conditions that the table shows anyway.
    """
    keys = [group.conditions for group in groups]
    asked = sorted(
        (each for each in CONDITIONS if each.title not in shown), key=lambda each: each.line
    )
    found = [(condition, _in_common(condition, keys)) for condition in asked]
    lines = [
        " · ".join(words for each, words in found if words and each.line == line)
        for line in range(3)
    ]
    first, *others = [line for line in lines if line] or [""]
    above = " · ".join(filter(None, (first, _runs(groups))))
    return (above, *others), tuple(condition for condition, words in found if words is None)


def _in_common(condition: Condition, keys: Sequence[Key]) -> str | None:
    """Return the condition's text for all of ``keys``, or None if it would be ambiguous."""
    if not condition.follows:
        values = {condition.words(key) for key in keys}
        return values.pop() if len(values) == 1 else None
    by_name: dict[str, str] = {}
    for key in keys:
        name = key.words(condition.follows[0])
        if by_name.setdefault(name, condition.words(key)) != condition.words(key):
            return None
    shown = {name: value for name, value in by_name.items() if value}
    if condition.title == "CPU" and len(by_name) == 1:
        return next(iter(shown.values()), "")  # the machine's name precedes it already
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _runs(groups: Sequence[GroupResult]) -> str:
    """Return how many runs each group has; rounds of slices are not trainings."""
    trainings = [group.trainings for group in groups]
    slices = [group.runs - group.trainings for group in groups]
    if not any(slices):
        return f"{_number(trainings, 'run')} each"
    whole = f"{_number(trainings, 'training')} and " if any(trainings) else ""
    return f"{whole}{_number(slices, 'round')} of slices each"


def _number(counts: Sequence[int], noun: str) -> str:
    """Return ``3 runs``, or ``2 to 3 runs`` if the counts differ."""
    most = units.many(max(counts), noun)
    return most if len(set(counts)) == 1 else f"{min(counts)} to {most}"
