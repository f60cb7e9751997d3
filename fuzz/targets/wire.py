"""Messages of measured processes: a record that can be read back, or ProtocolError."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import cast

from fuzz.structure import rewritten
from trainmark.backends.layout import Layout
from trainmark.data.locate import Located
from trainmark.errors import ProtocolError
from trainmark.execute.parent.check import read
from trainmark.execute.parent.command import Command, CommandRun, CommandSide
from trainmark.execute.parent.command_record import CommandRecordBuilder
from trainmark.execute.parent.machine_state import MachineState
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side, Spreading
from trainmark.execute.parent.probe import THIS, Seen
from trainmark.execute.parent.ranks_record import RanksRecordBuilder
from trainmark.execute.parent.record_builder import RecordBuilder
from trainmark.execute.parent.training_record import TrainingRecordBuilder
from trainmark.execute.protocol.answers import Answer
from trainmark.execute.protocol.wire import Channel
from trainmark.measure.vendor import Driver
from trainmark.record import codec
from trainmark.record.record import Machine, Outcome
from trainmark.study.explain.failure import replay_of
from trainmark.workload import catalog

ASKED = (
    "Train",
    "StartRanks",
    "RunScript",
    "Probe",
    "ListBackends",
    "MeasurePeaks",
    "Examine",
    "Predict",
    "Dissect",
    "ReplayTraining",
    "ComputeReference",
    "CheckParity",
)
_DATA = Located("mnist", Path("/data"), "named", "5f" * 32, True, 60_000, 10_000)
_COURSE = ScheduledWorkload(catalog.find("mnist-mlp512"), _DATA, 1)
_SIDE = Side("torch", "fast", "cpu", THIS)
_HERE = MachineState(
    Machine("m", "Linux", "x86_64", None, 1, 2, 2, 1 << 33, [], None, 0.0), Driver(), (0, 1)
)
_RUN = Run(_COURSE, _SIDE, Settings(), 0, 0, "plan", "plan")
_SPREAD = Run(
    _COURSE, _SIDE, Settings(kind="scale"), 0, 0, "plan", "plan", Spreading(Layout(data=2))
)
_COMMAND = CommandRun(
    Command("x", ("x",), Path("/")), CommandSide({}), Settings(), 0, 0, "plan", "plan"
)
BUILDERS: dict[str, Callable[[], RecordBuilder]] = {
    "Train": lambda: TrainingRecordBuilder(_RUN, Seen("torch", THIS), _HERE, None, False, "t"),
    "StartRanks": lambda: RanksRecordBuilder(_SPREAD, Seen("torch", THIS), _HERE, None, "t"),
    "RunScript": lambda: CommandRecordBuilder(_COMMAND, _HERE, "t"),
}


class _Line:
    """A socket on which everything has been sent."""

    def __init__(self, payload: bytes, size: int) -> None:
        self._said = payload
        self._size = size

    def recv(self, _: int) -> bytes:
        """Return the next bytes."""
        arrived = self._said[: self._size]
        self._said = self._said[self._size :]
        return arrived


def one(data: bytes) -> None:
    """Read one input. The first byte chooses the request, the second the size of the pieces of the
    rest."""
    asked, size = (ASKED[data[0] % len(ASKED)], data[1] + 1) if len(data) > 1 else (ASKED[0], 1)
    notes = BUILDERS[asked]() if asked in BUILDERS else None
    try:
        payload = received(data[2:], size, notes.on_answer if notes is not None else lambda _: None)
    except ProtocolError as error:
        assert str(error)
        return
    if notes is not None:
        for record in notes.records(Outcome("failed", "it was over")):
            codec.decode(codec.encode(record), "r.json")
    if asked == "ReplayTraining":
        replay_of(payload, _COURSE.workload, "fp32", None)


def received(
    payload: bytes, size: int = 1 << 16, on_answer: Callable[[Answer], None] = lambda _: None
) -> list[Answer]:
    """Return all messages, as the parent reads them."""
    channel = Channel(cast(socket.socket, _Line(payload, size)))
    every = list[Answer]()
    while (messages := channel.receive()) is not None:
        for message in messages:
            answer = read(message)
            if answer is not None:
                on_answer(answer)
                every.append(answer)
    return every


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """Mostly mutate one of the lines as JSON."""
    import atheris

    chance = random.Random(seed)
    lines = data[2:].split(b"\n")
    which = chance.randrange(len(lines))
    other = rewritten(lines[which], chance) if chance.random() < 0.7 else None
    if other is None:
        return bytes(atheris.Mutate(data, most))
    lines[which] = other
    if chance.random() < 0.2:
        lines.insert(chance.randrange(len(lines)), other)
    return (data[:2] + b"\n".join(lines))[:most]
