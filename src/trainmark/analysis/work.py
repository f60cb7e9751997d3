"""Whether the steps of a command's sides do the same work, and by what they are compared.

A step of an agent may be an episode, which is longer the better the agent is. Sides may have other
sizes of batches, which are unknown without a loader.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from trainmark.record.caveats import Caveat
from trainmark.record.record import Record

_ALIKE = 1.05
"""Largest ratio between amounts of work that are the same."""


@dataclass(frozen=True)
class Work:
    """The records of two sides, with the amounts of work that their slices are compared by.

    Args:
        reference: records of the reference.
        these: records of the other side.
        caveat: what their comparison is subject to; None if steps do the same work.
    """

    reference: Sequence[Record]
    these: Sequence[Record]
    caveat: Caveat | None = None

    @property
    def can_be_compared(self) -> bool:
        """Whether the sides do the same work, or an amount of it is known."""
        return self.caveat != Caveat.UNEQUAL_WORK


def of_steps(reference: Sequence[Record], these: Sequence[Record]) -> Work:
    """Return two sides of a command whose examples are unknown, with amounts of their steps.

    The steps of a side may have different numbers of forward passes; then passes are compared. If
    the sides differ in what a step does, nothing can be compared.
    """
    passes_before = _passes(reference)
    passes_after = _passes(these)
    amounts = _amount(reference), _amount(these)
    if not (passes_before and passes_after):
        caveat = None if _are_alike(amounts) else Caveat.UNEQUAL_WORK
        return _by_steps(reference, these, caveat)
    means = statistics.fmean(passes_before), statistics.fmean(passes_after)
    if _are_alike(passes_before) and _are_alike(passes_after):
        is_same = _are_alike(means) and _are_alike(amounts)
        return _by_steps(reference, these, None if is_same else Caveat.UNEQUAL_WORK)
    counted = [_counting_passes(record) for record in these]
    return Work([_counting_passes(record) for record in reference], counted, Caveat.PER_PASS)


def _passes(records: Sequence[Record]) -> list[float]:
    """Return the forward passes a step of each slice; empty if a slice lacks them."""
    slices = [each for record in records for each in record.slices]
    known = [each.passes / each.timed_steps for each in slices if each.passes]
    return known if len(known) == len(slices) else []


def _amount(records: Sequence[Record]) -> float:
    """Return the amount of input of a step; 0 if it is unknown or varies."""
    observed = [record.observed for record in records if record.observed is not None]
    amounts = [amount for seen in observed for _, _, amount in seen.step_times]
    return statistics.median(amounts) if amounts and _are_alike(amounts) else 0.0


def _are_alike(amounts: Sequence[float]) -> bool:
    """Whether amounts are the same, as far as they are known."""
    known = [each for each in amounts if each]
    return not known or max(known) <= _ALIKE * min(known)


def _by_steps(reference: Sequence[Record], these: Sequence[Record], caveat: Caveat | None) -> Work:
    counted = [_counting_steps(record) for record in these]
    return Work([_counting_steps(record) for record in reference], counted, caveat)


def _counting_steps(record: Record) -> Record:
    slices = [structs.replace(each, examples=float(each.timed_steps)) for each in record.slices]
    return structs.replace(record, slices=slices)


def _counting_passes(record: Record) -> Record:
    slices = [
        structs.replace(each, examples=float(each.passes or each.timed_steps))
        for each in record.slices
    ]
    return structs.replace(record, slices=slices)
