"""Throughput in the unit of its workload: samples or tokens per second."""

from __future__ import annotations

from trainmark import units
from trainmark.record.facts import tokens_of
from trainmark.record.record import Record


def per_example(record: Record) -> tuple[int, str]:
    """Return the number of units per example, and the unit: tokens for text, else samples."""
    tokens = tokens_of(record)
    return (tokens, "tokens/s") if tokens else (1, "samples/s")


def pace(samples_per_second: float | None, record: Record) -> str:
    """Return a throughput such as ``11.3k samples/s``."""
    count, unit = per_example(record)
    return units.rate(None if samples_per_second is None else count * samples_per_second, unit)
