"""The variants of one side that are timed against each other, as sent to the measured process."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from trainmark.analysis.attribution import CAPTURED, FAST, LARGER, PARTS, SHRUNK, WHOLE
from trainmark.backends.base import Options, StepPart
from trainmark.execute.protocol.worker_commands import Variant
from trainmark.workload.reduce import ablated, shrunk, with_batch
from trainmark.workload.spec import Workload

LARGER_TIMES = 10
"""How many times larger the batch of the variant ``larger batch`` is."""
SMALLEST_SWEPT = 4
"""Smallest batch size at which devices are compared, in examples."""
LARGEST_SWEPT = 16_384
"""Largest batch size at which devices are compared, in examples."""
_FEWEST_STEPS = 5
"""Steps that the training set must have at every size that is compared."""
_SHRUNK_STRETCH = 4.0
"""Timed stretch of a shrunk network, relative to the usual one: its steps are short."""


def variants(
    workload: Workload, options: Options, examples: int, *, accelerator: bool, fast: bool
) -> Iterator[Variant]:
    """Yield the whole step, then each ablation, then the variants with possible remedies.

    Args:
        examples: number of training examples.
        accelerator: the device computes while the host continues.
        fast: the backend also has the style ``fast``.
    """
    yield Variant(WHOLE, workload, options)
    for number, part in enumerate(PARTS, 1):
        yield Variant(f"without {part}", workload, options, PARTS[:number], part)
    rest = options
    if not accelerator:
        yield Variant(SHRUNK, shrunk(workload), options, PARTS, stretch=_SHRUNK_STRETCH)
    elif fast and options.style == "idiomatic":
        # The host launches kernels while the device computes, so launch cost shows only in a
        # variant without launches.
        rest = dataclasses.replace(options, style="fast")
        yield Variant(CAPTURED, workload, rest, PARTS)
    for cause, less in ablated(workload).items():
        parts: tuple[StepPart, ...] = PARTS if cause in ("attention", "norms") else (*PARTS, "loss")
        yield Variant(f"ablation of {cause}", less, rest, parts)
        if not accelerator or cause == "embedding":
            yield Variant(
                f"{SHRUNK} ablation of {cause}", shrunk(less), rest, parts, stretch=_SHRUNK_STRETCH
            )
    if fast and options.style != "fast":
        yield Variant(FAST, workload, dataclasses.replace(options, style="fast"))
    size = workload.batches.size
    if size != "full" and size * LARGER_TIMES <= examples:
        yield Variant(
            LARGER, with_batch(workload, size * LARGER_TIMES), options, stretch=1 / LARGER_TIMES
        )


def swept_sizes(examples: int) -> list[int]:
    """Return the batch sizes at which devices are compared."""
    largest = min(LARGEST_SWEPT, examples // _FEWEST_STEPS)
    return [size for size in (SMALLEST_SWEPT * 4**power for power in range(16)) if size <= largest]
