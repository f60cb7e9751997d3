"""A measurement that is one process with many rows."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from gpu import store
from gpu.measurement import Outcome
from gpu.session import Session


@dataclass(frozen=True)
class SharedProcess:
    """One process that measures many configurations.

    Args:
        item: the item that it belongs to.
        name: name of the measurement and of its file of rows.
        module: what to run.
        seconds: the most it may take.
        arguments: its own options.
    """

    item: str
    name: str
    module: str
    seconds: float
    arguments: tuple[str, ...]

    def measure(self, session: Session, seconds: float) -> Outcome:
        """Measure what has no row yet; rows are kept even if the process is killed."""
        rows = session.folder / self.item / f"{self.name}.jsonl"
        ran = session.processes.run(
            *(sys.executable, "-m", self.module, *self.arguments),
            *("--device", session.device, "--rows", str(rows), "--seconds", f"{seconds:.0f}"),
            *(("--quick",) if session.quick else ()),
            *(
                ("--nanogpt", str(session.nanogpt))
                if session.nanogpt and self.module == STYLES
                else ()
            ),
            seconds=seconds,
        )
        return Outcome(store.read_rows(rows), ran.problems)


STYLES = "gpu.styles"
"""The process that can measure nanoGPT's own model, too."""
