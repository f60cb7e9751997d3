"""What has been heard of a run on several processes, and its records: one of each rank here, and one of the whole."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from msgspec import structs

from trainmark.execute.here import Here
from trainmark.execute.notes import Notes, Rank
from trainmark.execute.plan import Run
from trainmark.execute.probe import Seen
from trainmark.execute.wire import Message
from trainmark.record.record import Memory, Outcome, Peaks, Record, Samples


class SpreadNotes:
    """Collects the messages of all ranks of this machine; see :class:`~trainmark.execute.notes.Notes`.

    The first rank speaks for the whole: losses and edges are common to all. The whole has its record on the machine of
    rank 0 alone.
    """

    def __init__(self, run: Run, seen: Seen, here: Here, peaks: Peaks | None, token: str) -> None:
        self.run = run
        self._seen, self._here, self._peaks, self._token = seen, here, peaks, token
        self._whole = Notes(run, seen, here, peaks, replayed=False, token=token)
        self._ranks: dict[int, Notes] = {}
        self._fallen: int | None = None

    @property
    def gpu(self) -> int | None:
        """Of the first rank."""
        return self._whole.gpu

    @property
    def rest_seconds(self) -> float:
        """As of the first rank."""
        return self._whole.rest_seconds

    def weights_file(self, folder: Path) -> Path:
        """Where the weights are saved, next to the record of the whole."""
        return self._whole.weights_file(folder)

    def hear(self, message: Message) -> None:
        """Take in a message: of one rank, or of the first that speaks for all."""
        if message["event"] == "rank":
            self._hear_rank(message["rank"], message["message"])
        elif message["event"] == "restarted":
            for notes in (self._whole, *self._ranks.values()):
                notes.begin_again()
        else:
            self._fallen = message.get("rank", self._fallen)
            self._whole.hear(message)

    def hold_memory(self, tree_pss_bytes: int | None) -> None:
        """Of all processes here."""
        self._whole.hold_memory(tree_pss_bytes)

    def go_on_from(self, before: SpreadNotes) -> None:
        """There is one run a process."""
        raise NotImplementedError

    def records(self, outcome: Outcome, samples: Samples | None = None) -> list[Record]:
        """Of each rank that came to life here, and of the whole where rank 0 is here or none came."""
        ranks = [notes.record(self._of_rank(rank, outcome)) for rank, notes in sorted(self._ranks.items())]
        if self._ranks and 0 not in self._ranks:
            return ranks
        whole = self._whole.record(outcome, samples)
        if not self._is_whole_here or self.gpu is not None:
            whole = structs.replace(whole, energy=None)  # of one machine, or one GPU: not of the whole
        memory = Memory(
            _sum([record.memory.host_peak_bytes for record in ranks]),
            _sum([record.memory.device_peak_bytes for record in ranks]),
        )
        return [*ranks, structs.replace(whole, memory=memory if self._is_whole_here else Memory())]

    @property
    def _is_whole_here(self) -> bool:
        """Whether all ranks are on this machine."""
        return self.run.spread is None or self.run.spread.rendezvous.nodes == 1

    def _hear_rank(self, rank: int, message: Message) -> None:
        if message["event"] == "hello" and rank not in self._ranks:
            run = self.run
            if run.side.device.startswith("cuda"):  # each rank has one of its own
                own = dataclasses.replace(run.side, device=f"cuda:{message['local_rank']}")
                run = dataclasses.replace(run, side=own)
            place = Rank(rank, message["host"])
            self._ranks[rank] = Notes(run, self._seen, self._here, self._peaks, False, self._token, place)
        elif rank in self._ranks:
            self._ranks[rank].hear(message)

    def _of_rank(self, rank: int, outcome: Outcome) -> Outcome:
        """How one rank ended, given how all did: what they printed is kept once."""
        if outcome.status != "failed" or self._fallen in (None, rank):
            return structs.replace(outcome, stderr_tail=None)
        return Outcome("failed", f"ended with rank {self._fallen}, which failed first")


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
