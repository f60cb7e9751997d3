"""Choose the reference of each group."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.analysis.groups import Repeats
from trainmark.errors import UnknownName, UsageError
from trainmark.record.facts import DIMENSIONS, Dimension

BASELINE_KEYS = (*DIMENSIONS, "precision", "threads", "version", "dataset")


def read_baseline(text: str | None) -> tuple[str, str] | None:
    """Split a baseline into key and value; raises :class:`~trainmark.errors.UsageError`."""
    if text is None:
        return None
    key, sign, value = text.partition("=")
    if not (key and sign and value):
        raise UsageError(
            "invalid baseline", expected="KEY=VALUE, such as device=cpu", found=repr(text)
        )
    return key, value


def references(
    groups: Sequence[Repeats], by: Dimension | None, baseline: tuple[str, str] | None
) -> list[int | None]:
    """Return the position of each group's reference.

    Groups of one workload form a family; with ``by``, only those that differ along that dimension
    alone. A family's reference is its first measured group that has the baseline's value, or its
    first measured group.

    Returns:
        positions in ``groups``; None if a family has no group with the baseline's value, or none
        with a finished run.

    Raises:
        UnknownName: no such dimension, or baseline key, or no group has the baseline's value.
        UsageError: the baseline is not of the dimension ``by``.
    """
    if by is not None:
        _require_dimension(by)
    if baseline is not None:
        _check(groups, by, *baseline)
    families = [group.key.same_work if by is None else group.key.without(by) for group in groups]
    first: dict[object, int] = {}
    for position, (family, group) in enumerate(zip(families, groups, strict=True)):
        if group.records and (baseline is None or group.key.words(baseline[0]) == baseline[1]):
            first.setdefault(family, position)
    return [first.get(family) for family in families]


def _require_dimension(by: str) -> None:
    if by == "workload":
        raise UsageError(
            "different workloads can't be compared for speed",
            expected=f"sides of the same workload, by {', '.join(DIMENSIONS)}",
            found="by workload",
        )
    if by not in DIMENSIONS:
        raise UnknownName("dimension", by, DIMENSIONS)


def _check(groups: Sequence[Repeats], by: Dimension | None, name: str, value: str) -> None:
    if name not in BASELINE_KEYS:
        raise UnknownName("baseline key", name, BASELINE_KEYS)
    if by is not None and name != by:
        raise UsageError(
            f"the baseline of a comparison by {by} can't be a {name}",
            expected=f"a baseline such as {by}={groups[0].key.words(by)}",
            found=f"{name}={value}",
        )
    known = {group.key.words(name) for group in groups if group.records}
    if value not in known:
        raise UnknownName(f"baseline {name}", value, known)
