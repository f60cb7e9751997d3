"""The variants of one side that are timed against each other, as the measured process is told of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainmark.analysis.attribution import (
    CAPTURED,
    FAST,
    LARGER,
    PARTS,
    PLAIN,
    SHRUNK,
    SHRUNK_PLAIN,
    WHOLE,
)
from trainmark.backends.base import Options, Part
from trainmark.workload.reduce import shrunk, with_batch, without_elementwise
from trainmark.workload.spec import Workload

LARGER_TIMES = 10
SMALLEST_SWEPT, LARGEST_SWEPT = 4, 16_384
_FEWEST_STEPS = 5
_SHRUNK_STRETCH = 4.0
_LEAST_STRETCH = 0.05


@dataclass(frozen=True)
class Variant:
    """One training that is timed.

    Args:
        without: parts that are left out, those of them that the step has.
        takes_away: the part whose cost this variant tells; it is not made where the step has none.
        stretch: steps timed at once, as a multiple of those of the first variant.
    """

    name: str
    workload: Workload
    options: Options
    without: tuple[Part, ...] = ()
    takes_away: Part | None = None
    stretch: float = 1.0

    def to_data(self) -> dict[str, Any]:
        """For the measured process."""
        return {
            "name": self.name,
            "workload": dataclasses.replace(self.workload, published=None).to_data(),
            "options": self.options.to_data(),
            "without": list(self.without),
            "takes_away": self.takes_away,
            "stretch": self.stretch,
        }


def variants(workload: Workload, options: Options, examples: int, *, accelerator: bool, fast: bool) -> list[Variant]:
    """The whole step first, then one thing less each time, then what could be done about it.

    Args:
        examples: of the training set.
        accelerator: the device is none that computes while the host waits.
        fast: the backend has that style, too.
    """
    return list(_variants(workload, options, examples, accelerator=accelerator, fast=fast))


def _variants(
    workload: Workload, options: Options, examples: int, *, accelerator: bool, fast: bool
) -> Iterator[Variant]:
    yield Variant(WHOLE, workload, options)
    for number, part in enumerate(PARTS, 1):
        yield Variant(f"without {part}", workload, options, PARTS[:number], part)
    rest = options
    if not accelerator:
        yield Variant(SHRUNK, shrunk(workload), options, PARTS, stretch=_SHRUNK_STRETCH)
    elif fast and options.style == "idiomatic":
        # There the host launches while the device computes, so what launching costs shows only where nobody launches.
        rest = dataclasses.replace(options, style="fast")
        yield Variant(CAPTURED, workload, rest, PARTS)
    plain = without_elementwise(workload)
    yield Variant(PLAIN, plain, rest, (*PARTS, "loss"))
    if not accelerator:
        yield Variant(SHRUNK_PLAIN, shrunk(plain), options, (*PARTS, "loss"), stretch=_SHRUNK_STRETCH)
    if fast and options.style != "fast":
        yield Variant(FAST, workload, dataclasses.replace(options, style="fast"))
    size = workload.batches.size
    if size != "full" and size * LARGER_TIMES <= examples:
        yield Variant(LARGER, with_batch(workload, size * LARGER_TIMES), options, stretch=1 / LARGER_TIMES)


def sweep(workload: Workload, options: Options, examples: int) -> list[Variant]:
    """The whole step with batches of many sizes."""
    largest = min(LARGEST_SWEPT, examples // _FEWEST_STEPS)
    sizes = [size for size in (SMALLEST_SWEPT * 4**power for power in range(16)) if size <= largest]
    return [
        Variant(
            f"{size} examples",
            with_batch(workload, size),
            options,
            stretch=max(sizes[0] / size, _LEAST_STRETCH),
        )
        for size in sizes
    ]
