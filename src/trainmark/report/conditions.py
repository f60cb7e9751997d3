"""What holds for every group of a table is said once above it; what does not becomes a column."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.groups import Key
from trainmark.analysis.results import GroupResult
from trainmark.record.caveats import BUSY_SHARE


@dataclass(frozen=True)
class Fact:
    """One condition of a measurement.

    Args:
        title: of its column, where it needs one.
        of: what a key says of it, in words; empty says nothing.
        given: names what it normally follows from, such as a backend's version from the backend. Then it may differ
            between groups and still be said above the table, once a name.
    """

    title: str
    of: Callable[[Key], str]
    given: Callable[[Key], str] | None = None


def _data(key: Key) -> str:
    if key.dataset is None or key.train_examples is None:
        return ""
    test = f" and {key.test_examples:,} test" if key.test_examples else ""
    return f"{key.dataset}, {key.train_examples:,} training{test} examples"


def threads(key: Key) -> str:
    """How many the framework was given."""
    if key.precision is None:  # a command of somebody's own, which does not tell
        return ""
    if key.threads is None:
        return "default threads"
    return f"{key.threads} thread{'s' if key.threads != 1 else ''}"


def _protocol(key: Key) -> str:
    if key.precision is None:
        return ""
    return "fresh weights" if key.protocol == "fresh" else key.protocol


def _cpu(key: Key) -> str:
    cores = "" if key.cores is None else f"{key.cores} core{'s' if key.cores != 1 else ''}"
    return ", ".join(part for part in (key.cpu or "CPU not known", cores) if part)


_LINES: tuple[tuple[Fact, ...], ...] = (
    (
        Fact("dataset", _data),
        Fact("precision", lambda key: key.precision or ""),
        Fact("threads", threads),
        Fact("layout", lambda key: key.layout or ""),
        Fact("protocol", _protocol),
        Fact("memory", lambda key: "" if not key.memory_fraction else f"memory limit {key.memory_fraction:.0%}"),
        Fact("weights", lambda key: f"weights from {key.weights_from}" if key.weights_from else ""),
    ),
    (
        Fact("machine", lambda key: key.machine),
        Fact("CPU", _cpu, given=lambda key: key.machine),
        Fact("device name", lambda key: key.device_name or "", given=lambda key: key.device),
    ),
    (
        Fact("version", lambda key: key.version or "", given=lambda key: key.backend),
        Fact("python", lambda key: "" if key.precision is None else f"python {key.python}"),
        Fact("program", lambda key: f"program {key.program}" if key.program else "", given=lambda key: key.style),
    ),
)


def when_measured(at: str | None, others_share: float | None) -> str:
    """``measured on 2026-11-21 17:12 UTC``, and that others used the machine then, where they did."""
    words = f"measured on {units.moment(at)}" if at else "measured"
    if others_share is not None and others_share > BUSY_SHARE:
        words += f" while others used {others_share:.0%} of the CPU, so the device can do more"
    return words


def split(groups: Sequence[GroupResult], told: Container[str] = ()) -> tuple[tuple[str, ...], tuple[Fact, ...]]:
    """The lines above a table of ``groups``, and the facts that need a column in it.

    Args:
        told: titles of facts that the table tells anyway.
    """
    keys = [group.key for group in groups]
    lines, columns = [], []
    for facts in _LINES:
        said = []
        for fact in facts:
            if fact.title in told:
                continue
            words = _in_common(fact, keys)
            if words is None:
                columns.append(fact)
            elif words:
                said.append(words)
        if said:
            lines.append(" · ".join(said))
    lines[:1] = [" · ".join([*lines[:1], _runs(groups)])]
    return tuple(lines), tuple(columns)


def _in_common(fact: Fact, keys: Sequence[Key]) -> str | None:
    """The fact in words for all of ``keys``, or None when a reader could not tell which holds for which."""
    if fact.given is None:
        values = {fact.of(key) for key in keys}
        return values.pop() if len(values) == 1 else None
    by_name: dict[str, str] = {}
    for key in keys:
        if by_name.setdefault(fact.given(key), fact.of(key)) != fact.of(key):
            return None
    told = {name: value for name, value in by_name.items() if value}
    if fact.title == "CPU" and len(by_name) == 1:
        return next(iter(told.values()), "")  # the machine's name stands before it already
    return ", ".join(f"{name} {value}" for name, value in told.items())


def _runs(groups: Sequence[GroupResult]) -> str:
    fewest, most = min(group.runs for group in groups), max(group.runs for group in groups)
    number = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{units.count(most, 'run')} each" if number == "1" else f"{number} runs each"
