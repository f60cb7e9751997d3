"""Turns the messages of a worker into answers, and refuses malformed ones."""

from __future__ import annotations

import dataclasses
import re
import reprlib

import msgspec

from trainmark.errors import ProtocolError
from trainmark.execute.protocol.answers import (
    ANSWERS,
    Answer,
    EpochEnded,
    Evaluated,
    EvaluatedBefore,
    OfRank,
)
from trainmark.execute.protocol.wire import Message, broken
from trainmark.units import many
from trainmark.workload.decode import require_shallow


def read(message: Message) -> Answer | None:
    """Return the answer in ``message``; None for an unknown kind, such as a later version's.

    Raises:
        ProtocolError: an answer of another form.
    """
    event = message["event"]
    kind = ANSWERS.get(event)
    if kind is None:
        return None
    try:
        answer = msgspec.convert(message, kind)
        require_shallow(message)
        # An integer that is too large for a record raises OverflowError.
        msgspec.msgpack.encode(message)
        if isinstance(answer, OfRank):
            inner = answer.message
            is_message = isinstance(inner, dict) and isinstance(inner.get("event"), str)
            if not is_message or inner["event"] == event:
                raise msgspec.ValidationError("message: nested rank message")
            return dataclasses.replace(answer, message=read(inner))
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        field = re.search(r"\$\.(\w+)", str(error))
        value = f"{field[1]} = {reprlib.repr(message[field[1]])}: " if field else ""
        raise ProtocolError(
            f"the measured process broke the protocol with its {event[:40]!r}",
            expected="the form defined in execute/protocol/answers.py",
            found=f"{value}{error}",
        ) from error
    return answer


def require_in_place(answer: EpochEnded | Evaluated | EvaluatedBefore, epochs: int) -> None:
    """Raise ProtocolError unless ``answer`` is in place after ``epochs`` earlier ones.

    It is in place if it is the next epoch, or the test of the last one.
    """
    index = -1 if isinstance(answer, EvaluatedBefore) else answer.index
    if index != (epochs if isinstance(answer, EpochEnded) else epochs - 1):
        found = f"{type(answer).__name__} {index} after {many(epochs, 'epoch')}"
        raise broken("epochs in order, each before its test", found)
