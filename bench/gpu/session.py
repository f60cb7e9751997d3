"""What all measurements of one call share: the folder, the device, and how to run a command."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gpu.process import GRACE_SECONDS, Processes, Ran


@dataclass
class Session:
    """One call of ``python bench/gpu``.

    Args:
        folder: holds all results.
        device: the GPU; ``cpu`` in a rehearsal.
        quick: whether to use tiny sizes.
        processes: runs commands.
        context: what is written next to every result: machine, versions, commit.
        instead: backends that take the place of others in a rehearsal.
        nanogpt: a checkout of nanoGPT.
    """

    folder: Path
    device: str
    quick: bool
    processes: Processes
    context: dict[str, Any]
    instead: dict[str, str] = field(default_factory=dict)
    nanogpt: Path | None = None

    @property
    def devices(self) -> str:
        """The CPU and the GPU, as trainmark's options take them; only the CPU in a rehearsal."""
        return ",".join(dict.fromkeys(("cpu", self.device)))

    def backend(self, name: str) -> str:
        """The backend to measure."""
        return self.instead.get(name, name)

    def trainmark(
        self,
        *arguments: str,
        seconds: float,
        more: dict[str, str] | None = None,
        grace: float = GRACE_SECONDS,
    ) -> Ran:
        """Run a trainmark command; the arguments are those of :meth:`Processes.run`."""
        words = (sys.executable, "-m", "trainmark", *arguments)
        return self.processes.run(*words, seconds=seconds, more=more, grace=grace)

    @cached_property
    def datasets(self) -> frozenset[str]:
        """Names of the datasets that are on this machine."""
        listed = self.trainmark("data", "list", "--json", seconds=60)
        return frozenset(
            each["name"] for each in json.loads(listed.printed or "[]") if each["directory"]
        )
