"""Read the measured counterparts of published values from the runs of a group."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from operator import attrgetter

from trainmark.analysis.grouping import grouped
from trainmark.analysis.statistics import median
from trainmark.record.record import Record
from trainmark.workload.published import PublishedRun, PublishedValue

Chain = tuple[Record, ...]


def chains_of(records: Sequence[Record], run: PublishedRun) -> list[Chain]:
    """Return the records of each plan, in the order of their repeats.

    ``continued`` repeats train one network on. Only as many as were published count; a chain that
    lacks one has no comparable states and is omitted, unless it ended because the loss became
    non-finite.
    """
    plans = grouped(records, attrgetter("group.id"))
    chains = [tuple(sorted(plan, key=attrgetter("repeat"))) for plan in plans.values()]
    if run.protocol == "fresh":
        return chains
    cut = [chain[: run.repeats] for chain in chains]
    return [
        chain
        for chain in cut
        if _whole(chain, run.repeats) or chain[-1].outcome.status == "diverged"
    ]


def read_value(
    chains: Sequence[Chain], value: PublishedValue, run: PublishedRun
) -> tuple[float | None, str]:
    """Return the measured counterpart of ``value``, or why there is none.

    It is the median over all repeats, or over each chain's ``value.repeat``.

    NaN if a network diverged before that position, since the published scripts crashed there and
    lost their results. None, with the reason, if there is no value to compare.
    """
    if not chains:
        return None, f"needs {run.repeats} continued repeats"
    needed = value.repeat or run.repeats
    if run.protocol == "continued" and any(len(chain) < needed for chain in chains):
        return math.nan, ""
    span = slice(None) if value.repeat is None else slice(value.repeat - 1, value.repeat)
    records = itertools.chain.from_iterable(chain[span] for chain in chains)
    read = [_read(record, value) for record in records]
    if any(each is not None and math.isnan(each) for each in read):
        return math.nan, ""
    found = median(read)
    return found, "not measured" if found is None else ""


def _whole(chain: Chain, repeats: int) -> bool:
    """Return whether no repeat is missing between the first and the last."""
    return len(chain) == repeats and chain[-1].repeat - chain[0].repeat == repeats - 1


def _read(record: Record, value: PublishedValue) -> float | None:
    read = _read_steps if value.quantity.startswith("step_") else _read_epochs
    found = read(record, value)
    if found is None and record.outcome.status == "diverged":
        return math.nan
    return found


def _read_steps(record: Record, value: PublishedValue) -> float | None:
    """Return the mean over steps, of the total losses or of their L2 part."""
    losses = record.step_losses if value.quantity == "step_loss" else record.step_l2_losses
    if not losses:
        return None
    if value.steps is None:
        return losses[-1]
    first, last, every = value.steps
    return statistics.fmean(losses[first : last + 1 : every]) if last < len(losses) else None


def _read_epochs(record: Record, value: PublishedValue) -> float | None:
    """Return the mean over epochs, or the value before the first step or at the end of the run."""
    if value.epochs is None:
        final: float | None = getattr(record.final, value.quantity)
        return final
    first, last = value.epochs
    if last == 0:
        found: float | None = getattr(record.before, value.quantity, None)
        return found
    read = [getattr(epoch, value.quantity) for epoch in record.epochs[first - 1 : last]]
    known = [number for number in read if number is not None]
    return statistics.fmean(known) if len(known) == last - first + 1 else None
