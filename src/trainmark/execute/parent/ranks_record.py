"""The records of a run on several processes.

There is one of each rank on this machine, and one of the whole.
"""

from __future__ import annotations

import dataclasses

from msgspec import structs

from trainmark.backends.base import device_of_rank
from trainmark.execute.parent.machine_state import MachineState
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.training_record import TrainingRecordBuilder
from trainmark.execute.protocol.answers import Answer, Failed, OfRank, RankBorn
from trainmark.record.record import Memory, Outcome, Peaks, Record, Samples


class RanksRecordBuilder(TrainingRecordBuilder):
    """Collects the answers of all ranks of this machine.

    The first rank reports for all: losses and epoch times are common. Only the machine of rank 0
    writes the record of the whole training.
    """

    def __init__(
        self, run: Run, seen: Seen, state: MachineState, peaks: Peaks | None, token: str
    ) -> None:
        super().__init__(run, seen, state, peaks, replayed=False, token=token)
        self._token = token
        self._ranks: dict[int, TrainingRecordBuilder] = {}
        self._fallen: int | None = None

    def on_answer(self, answer: Answer) -> None:
        """Take in an answer of one rank, or of the first rank on behalf of all."""
        match answer:
            case OfRank():
                self._hear_rank(answer.rank, answer.message)
            case Failed(rank=int() as fallen):
                self._fallen = fallen
            case _:
                super().on_answer(answer)

    def records(self, outcome: Outcome, samples: Samples | None = None) -> list[Record]:
        """Return the record of each rank that started here, and that of the whole.

        The latter is left out unless rank 0 is here or none started.
        """
        ranks = [
            notes.record(self._of_rank(rank, outcome))
            for rank, notes in sorted(self._ranks.items())
        ]
        if self._ranks and 0 not in self._ranks:
            return ranks
        whole = self.record(outcome, samples)
        if not self._is_whole_here or self.gpu is not None:
            whole = structs.replace(whole, energy=None)  # it covers one machine or one GPU only
        memory = Memory(
            _sum([record.memory.host_peak_bytes for record in ranks]),
            _sum([record.memory.device_peak_bytes for record in ranks]),
        )
        return [*ranks, structs.replace(whole, memory=memory if self._is_whole_here else Memory())]

    @property
    def _is_whole_here(self) -> bool:
        """Whether all ranks are on this machine."""
        return self.run.spread is None or self.run.spread.rendezvous.nodes == 1

    def _hear_rank(self, rank: int, answer: Answer | None) -> None:
        if isinstance(answer, RankBorn) and answer.rank not in self._ranks:
            device = device_of_rank(self.run.side.device, answer.local_rank)
            run = dataclasses.replace(
                self.run, side=dataclasses.replace(self.run.side, device=device)
            )
            notes = TrainingRecordBuilder(
                run, self.seen, self.state, self.peaks, False, self._token, answer
            )
            self._ranks[answer.rank] = notes
        elif rank in self._ranks and answer is not None:
            self._ranks[rank].on_answer(answer)

    def _of_rank(self, rank: int, outcome: Outcome) -> Outcome:
        """Return how one rank ended; the output is kept only in the record of the whole."""
        if outcome.status != "failed" or self._fallen in (None, rank):
            return structs.replace(outcome, stderr_tail=None)
        return Outcome("failed", f"ended with rank {self._fallen}, which failed first")


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
