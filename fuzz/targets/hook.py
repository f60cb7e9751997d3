"""Lines that report the epochs of a script: valid epochs are kept, others counted, and a flood is
not stored."""

from __future__ import annotations

import json
import math
import random

from fuzz.structure import rewritten
from trainmark.execute.protocol.answers import (
    EpochEnded,
    MetricLogged,
    SliceTimed,
    StepsObserved,
    ThreadsTried,
    Waiting,
)
from trainmark.execute.worker.reports import Reports, ToBeEnded

ORIGIN = 1_000.0
NOW = 2_000.0


def one(data: bytes) -> None:
    """Read one input. The first byte is the size of the pieces in which the rest arrives."""
    size = data[0] % 64 + 1 if data else 1
    reports = Reports(0.5)
    epochs = 0
    edge = 0.5
    for start in range(1, len(data), size):
        for message in reports.take(data[start : start + size], ORIGIN, NOW):
            if isinstance(message, (MetricLogged, StepsObserved, ToBeEnded, Waiting)):
                continue
            if isinstance(message, ThreadsTried):
                assert {message.chosen, message.default} <= dict(message.tried).keys()
                assert all(0 < seconds < math.inf for _, seconds in message.tried)
                continue
            if isinstance(message, EpochEnded):
                assert message.index == epochs
                assert (
                    edge <= message.start <= message.start + message.seconds <= NOW - ORIGIN + 1e-6
                )
                edge = message.start
                epochs = epochs + 1
            elif isinstance(message, SliceTimed):
                assert 0 <= message.start <= message.start + message.seconds <= NOW - ORIGIN + 1e-6
            else:
                assert message.index == epochs - 1
            assert math.isfinite(message.seconds)
            assert all(
                abs(getattr(message, name, None) or 0) != math.inf
                for name in ("test_accuracy", "train_accuracy")
            )
    assert len(reports.odd) <= 3
    assert all(len(what) <= 100 for what in reports.odd)
    assert len(json.dumps(reports.packages)) < 60_000


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """Mutate one of the lines as JSON, half of the time."""
    import atheris

    chance = random.Random(seed)
    head = data[:1]
    lines = data[1:].split(b"\n")
    which = chance.randrange(len(lines))
    other = rewritten(lines[which], chance) if chance.random() < 0.5 else None
    if other is None:
        return bytes(atheris.Mutate(data, most))
    kept = [] if chance.random() < 0.1 else [other]
    twice = lines[which : which + 1] if chance.random() < 0.2 else []
    return (head + b"\n".join([*lines[:which], *kept, *twice, *lines[which + 1 :]]))[:most]
