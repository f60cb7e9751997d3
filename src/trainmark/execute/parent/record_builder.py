"""What the records of workloads and of commands have in common: epochs, their sums, and caveats."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import structs

from trainmark.execute.parent.check import require_in_place
from trainmark.execute.parent.here import Here
from trainmark.execute.protocol.answers import EpochEnded, Evaluated
from trainmark.measure.energy import is_too_short
from trainmark.measure.noise import noise
from trainmark.record.caveats import Caveat
from trainmark.record.record import Energy, Epoch, Final, Samples
from trainmark.record.store import safe_name

NOT_LEARNING_MARGIN = 1e-3
"""The loss must end at least this share below where it began to count as learning."""


class RecordBuilder:
    """Collects the messages of one run, from which a subclass builds its record, however the run ended.

    Args:
        parts: of the record's id.
        here: the machine as it was before the run.
    """

    def __init__(self, parts: Iterable[str], here: Here) -> None:
        self.here = here
        self.id = "-".join(map(safe_name, parts))
        self.created = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        self.epochs: list[Epoch] = []

    @property
    def gpu(self) -> int | None:
        """The driver's number of the GPU that it trains on; None for a CPU or if unknown."""
        raise NotImplementedError

    def weights_file(self, folder: Path) -> Path:
        """The file for this run's weights, next to its record."""
        return folder / f"{self.id}.safetensors"

    def hold_memory(self, tree_pss_bytes: int | None) -> None:
        """Keep the memory in use at the end of the latest epoch."""
        self.epochs[-1] = structs.replace(self.epochs[-1], tree_pss_bytes=tree_pss_bytes)

    def _add_epoch(self, answer: EpochEnded) -> None:
        require_in_place(answer, len(self.epochs))
        self.epochs.append(
            Epoch(
                index=answer.index,
                start_seconds=answer.start,
                seconds=answer.seconds,
                steps=answer.steps,
                examples=answer.examples,
                data_wait_seconds=answer.data_wait_seconds,
                train_loss=answer.train_loss,
                train_accuracy=answer.train_accuracy,
            )
        )

    def _add_evaluation(self, answer: Evaluated) -> None:
        require_in_place(answer, len(self.epochs))
        last = self.epochs[-1]
        self.epochs[-1] = structs.replace(
            last,
            train_loss=last.train_loss if answer.train_loss is None else answer.train_loss,
            train_accuracy=last.train_accuracy if answer.train_accuracy is None else answer.train_accuracy,
            test_loss=answer.test_loss,
            test_accuracy=answer.test_accuracy,
            evaluation_seconds=answer.seconds,
        )

    def _final(self, time_to_target_seconds: float | None = None) -> Final:
        if not self.epochs:
            return Final()
        last = self.epochs[-1]
        return Final(
            train_loss=last.train_loss,
            train_accuracy=last.train_accuracy,
            test_loss=last.test_loss,
            test_accuracy=last.test_accuracy,
            training_seconds=math.fsum(epoch.seconds for epoch in self.epochs),
            time_to_target_seconds=time_to_target_seconds,
        )

    def _caveats(
        self,
        holds: Mapping[Caveat, bool],
        windows: list[Epoch],
        samples: Samples | None,
        used: Energy | None,
        *,
        on_cpu: bool,
    ) -> list[Caveat]:
        """Those that hold, in their own order.

        Args:
            holds: of this kind of run.
            windows: when it trained.
            used: the energy that the record will tell.
        """
        common = {
            Caveat.BUSY_MACHINE: self.here.is_busy,
            Caveat.SHARED_DEVICE: self.here.is_shared(self.gpu),
            Caveat.SHORT_ENERGY_WINDOW: used is not None and samples is not None and is_too_short(windows, samples),
        }
        found = noise(windows, samples, cores=self.here.cores, on_cpu=on_cpu, gpu=self.gpu)
        found |= {caveat for each in (common, holds) for caveat, applies in each.items() if applies}
        return [caveat for caveat in Caveat if caveat in found]
