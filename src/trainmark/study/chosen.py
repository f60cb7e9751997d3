"""One side of one workload, for studies that look at a single training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Unpack

from trainmark.backends.base import Device, Options
from trainmark.errors import UsageError
from trainmark.execute.parent import request as run_requests
from trainmark.execute.parent.plan import ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.process import AskOptions, Ending, ask
from trainmark.execute.parent.request import PreparationObserver
from trainmark.execute.protocol.answers import Answer
from trainmark.execute.protocol.worker_commands import WorkerCommand


@dataclass(frozen=True)
class ChosenSide:
    """What is trained, on which data, by which side.

    Args:
        seen: what its backend can do.
    """

    scheduled: ScheduledWorkload
    side: Side
    seen: Seen
    settings: Settings

    @property
    def device(self) -> Device | None:
        """What its backend says of its device."""
        return self.seen.device(self.side.device)

    @property
    def accelerator(self) -> bool:
        """Whether its device is not the CPU."""
        return self.device is not None and self.device.kind == "accelerator"

    @property
    def batch(self) -> int:
        """Examples per step."""
        size = self.scheduled.workload.batches.size
        return self.scheduled.dataset.train_examples if size == "full" else size

    def options(self) -> Options:
        """The options of its trainer."""
        return self.side.options(self.settings.seed, self.settings)

    def ask(
        self, request: WorkerCommand, **options: Unpack[AskOptions]
    ) -> tuple[list[Answer], Ending]:
        """Send ``request`` to a new process, with the threads and the time limit of the settings.

        Args:
            request: what to do.
            options: override the threads and the time limit, among others.

        Returns:
            Its answers and how it ended.
        """
        limits: AskOptions = {"threads": self.settings.threads, "timeout": self.settings.timeout}
        return ask(self.side.interpreter.path, request, **limits | options)


def choose(
    request: run_requests.RunRequest,
    preparation: PreparationObserver | None,
    pick: Callable[[Sequence[Side]], Side] = itemgetter(0),
) -> ChosenSide:
    """Find the side and its data.

    Args:
        request: of one workload, and at most one backend, style and device.
        pick: chooses one of the sides that can run it.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """
    for option, asked in (
        ("--backend", request.backends),
        ("--style", request.styles),
        ("--device", request.devices),
    ):
        if len(asked) > 1:
            raise UsageError(
                "only one side at a time", expected=f"one {option}", found=", ".join(asked)
            )
    selection = run_requests.select(request, preparation)
    ((workload, able),) = selection.able
    side = pick(able)
    scheduled = ScheduledWorkload(
        workload, run_requests.locate_one(request, workload, preparation), 1
    )
    return ChosenSide(
        scheduled, side, selection.by_side[side.backend, side.interpreter.label], request.settings
    )
