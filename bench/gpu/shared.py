"""One process that measures many configurations one after the other, and writes each row
immediately.

This saves the 8 to 12 s that a process takes to start on a GPU, but earlier configurations may slow
down later ones by what they leave behind. So it is for surveys, never for verdicts, and each row
has the caveat `shared-process`.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gpu import store
from trainmark.record.caveats import Caveat

LONGEST_ERROR = 300
"""Characters of an error that a row keeps."""
START_SHARE = 0.9
"""No configuration starts after this share of the limit."""


class Configuration(Protocol):
    """Something to measure.

    Attributes:
        facts: description as JSON, different for each configuration.
    """

    @property
    def facts(self) -> dict[str, Any]: ...

    def measure(self) -> dict[str, Any]:
        """Measure it and return its row."""


@dataclass(frozen=True)
class SharedOptions:
    """Options of such a process.

    Args:
        rows: the file of rows.
        device: the device to measure.
        seconds: its limit.
        quick: whether to use tiny sizes.
    """

    rows: Path
    device: str
    seconds: float
    quick: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of every such process."""
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--quick", action="store_true")


def read_options(parsed: argparse.Namespace) -> SharedOptions:
    """Read the options of every such process."""
    return SharedOptions(parsed.rows, parsed.device, parsed.seconds, parsed.quick)


def measure_all(
    configurations: Iterable[Configuration],
    options: SharedOptions,
    free: Callable[[], None],
    start: float,
) -> int:
    """Measure what has no row yet.

    Args:
        configurations: the most important one first.
        options: where to write, and how long it may take.
        free: releases the framework's memory, after each configuration.
        start: when the process began, on the monotonic clock.

    Returns:
        The exit status: 0 if all have a row, 3 if the time was too short.
    """
    options.rows.parent.mkdir(parents=True, exist_ok=True)
    store.drop_torn_line(options.rows)
    done = [row["facts"] for row in store.read_rows(options.rows)]
    left = 0
    for configuration in configurations:
        if configuration.facts in done:
            continue
        if time.monotonic() - start > START_SHARE * options.seconds:
            left += 1
            continue
        began = time.monotonic()
        row = _row(configuration)
        row["took_seconds"] = round(time.monotonic() - began, 2)
        store.append_row(options.rows, row)
        print(f"{row['status']}: {configuration.facts}", file=sys.stderr, flush=True)
        # If the device is lost, this ends the process; the next process continues after this row.
        gc.collect()
        free()
    if left:
        print(f"{left} configurations did not fit into {options.seconds:.0f} s", file=sys.stderr)
    return 3 if left else 0


def _row(configuration: Configuration) -> dict[str, Any]:
    """Measure; a configuration that fails, for example for lack of memory, does not stop the
    others."""
    about = {"facts": configuration.facts, "caveats": [Caveat.SHARED_PROCESS.value]}
    try:
        return {**about, "status": "ok", **configuration.measure()}
    except Exception as error:  # noqa: BLE001  (frameworks raise anything)
        # Only the text is kept: the traceback would keep the tensors of its frames alive.
        text = "".join(traceback.format_exception_only(error)).strip()
        return {**about, "status": "failed", "error": text[:LONGEST_ERROR]}
