"""The processes of a command: which one is reported, and after which step all of them end.

They agree by files in a folder that trainmark makes.
"""

from __future__ import annotations

import os
import time
from typing import Any

from .hooks import load_hook

STEPS = "TRAINMARK_STEPS"
"""Environment variable: the step after which the training ends."""
PROCESS = "TRAINMARK_PROCESS"
"""Environment variable: the id of the first Python process of the command, which its children
inherit."""
_POLL_SECONDS = 0.1
"""Time between two looks of a process that waits to be ended."""
_SILENT_POLLS = 100
"""Number of looks without a report of the training that is reported, after which that one has
ended by itself."""
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Environment variables with the rank of this process among several."""
_WORLDS = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""Environment variables with the number of ranks."""


class Processes:
    """This process among those of its command.

    Args:
        folder: where they agree.

    Attributes:
        has_ranks: whether several processes train together, as far as is known.
        last_step: the step after which the training ends; 0 if it is not known.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._claimed = os.path.join(folder, "claimed")
        self._first = int(os.environ.get(PROCESS) or os.getpid())
        self.has_ranks = any(int(os.environ.get(name) or 1) > 1 for name in _WORLDS)
        self.last_step = int(os.environ.get(STEPS) or 0)

    @property
    def is_first(self) -> bool:
        """Whether this is the command's own process."""
        return os.getpid() == self._first

    def claims(self) -> bool:
        """Whether this process is the one that is reported: the first that asks."""
        if any(os.environ.get(rank, "0") != "0" for rank in _RANKS):
            return False
        try:
            os.close(os.open(self._claimed, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError:
            self.has_ranks = True  # this may be a rank without rank variables: all end together
            with open(self._claimed, "a") as file:
                file.write("followed")
            return False
        return True

    def goes_on(self) -> None:
        """Let others see that the training that is reported goes on."""
        os.utime(self._claimed)

    def ends_after(self, steps: int) -> bool:
        """Whether the training ends after this number of steps."""
        if self.last_step and steps >= self.last_step:
            return True
        return self.has_ranks and self._is_told_to_end(steps)

    def _is_told_to_end(self, steps: int) -> bool:
        """Whether the first rank has set the step after which all ranks end."""
        try:
            with open(os.path.join(self._folder, "last-step")) as file:
                self.last_step = int(file.read())
        except (OSError, ValueError):
            return False
        return steps >= self.last_step

    def tell_to_end(self, last_step: int) -> bool:
        """Set the step after which all end; return whether this process is alone, and ends now."""
        self.last_step = last_step
        path = os.path.join(self._folder, "last-step")
        with open(path + ".new", "w") as file:
            file.write(str(last_step))
        # Trainings that the command starts later end, too
        os.replace(path + ".new", path)
        return not (self.has_ranks or os.path.getsize(self._claimed))

    def wait_to_be_ended(self, hook: Any, *, speaks: bool) -> None:
        """Wait until trainmark ends the whole command.

        Args:
            hook: reports; None if this process has none yet.
            speaks: whether this process is the one that is reported.
        """
        silent = _SILENT_POLLS if speaks else 0
        reported = None
        while True:
            if silent == _SILENT_POLLS:
                hook = hook or load_hook()
                hook._send({"event": "end", "t": time.perf_counter()})
            silent += 1
            time.sleep(_POLL_SECONDS)
            last = reported
            reported = os.stat(self._claimed).st_mtime_ns
            if last != reported and silent < _SILENT_POLLS:
                silent = 0
