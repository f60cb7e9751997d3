"""Tell trainmark about the epochs of a training of your own.

    from trainmark import hook

    for epoch in range(epochs):
        ...
        hook.epoch(loss=loss, accuracy=accuracy, examples=len(data))
        hook.test(accuracy=right / len(test_data))

Outside ``trainmark measure`` this does nothing and costs next to nothing. It needs only the standard library of Python
3.8 or newer, so this one file may be copied into a project that has no trainmark. What is said, and how a program in
another language says it, is in docs/protocol.md.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import SupportsFloat

__all__ = ["batches", "begin", "epoch", "is_listening", "test"]

VARIABLE = "TRAINMARK_HOOK"
"""Of the environment: the file, or the number of the descriptor, that lines are written to."""
VERSION = 1
_T = TypeVar("_T")
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "numpy", "lightning", "transformers")


def is_listening() -> bool:
    """Whether anybody hears what is said here."""
    return _out is not None


def begin() -> None:
    """The first step of an epoch comes now.

    Without it an epoch begins where the one before, or its test, ended; the first one where this module was imported.
    """
    global _waited
    if _out is not None:
        _waited = None if _waited is None else 0.0  # what was waited for before is not this epoch's
        _say({"event": "begin", "t": time.perf_counter()})


def epoch(
    loss: SupportsFloat | None = None,
    accuracy: SupportsFloat | None = None,
    examples: int | None = None,
    steps: int | None = None,
    ended: float | None = None,
) -> None:
    """An epoch has ended; its test, if there is one, comes after.

    Args:
        loss: of the training examples, a number or anything that ``float`` takes. A tensor that lies on a GPU is waited
            for, so the clock is read when the device has finished; else synchronise before.
        accuracy: of the training examples, 0 to 1.
        examples: how many were trained on in this epoch.
        steps: how many there were.
        ended: what ``time.perf_counter()`` was at its end, where that is told later; now if not given.
    """
    global _epochs, _waited
    if _out is None:
        return
    said = _figures(loss, accuracy)
    counts = {"examples": examples, "steps": steps}
    said.update((name, int(value)) for name, value in counts.items() if value is not None)
    said.update(event="epoch", index=_epochs, t=time.perf_counter() if ended is None else ended)
    if _waited is not None:
        said["data_wait_seconds"], _waited = _waited, 0.0
    if _epochs == 0:
        loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in _FRAMEWORKS}
        said["packages"] = {name: str(version) for name, version in loaded.items() if version is not None}
    _epochs += 1
    _say(said)


def test(loss: SupportsFloat | None = None, accuracy: SupportsFloat | None = None) -> None:
    """The test after an epoch has ended; the time it took is not part of any epoch.

    Args:
        loss: of examples that were not trained on.
        accuracy: of the same, 0 to 1.
    """
    global _waited
    if _out is not None:
        _waited = None if _waited is None else 0.0
        _say({**_figures(loss, accuracy), "event": "test", "t": time.perf_counter()})


def batches(loader: Iterable[_T]) -> Iterator[_T]:
    """What ``loader`` gives, one after the other; how long that keeps the training waiting is told with the epoch."""
    global _waited
    if _out is None:
        yield from loader
        return
    source = None
    while True:
        start = time.perf_counter()
        try:
            source = iter(loader) if source is None else source  # which may start processes
            batch = next(source)
        except StopIteration:
            return
        finally:
            _waited = (_waited or 0.0) + time.perf_counter() - start
        yield batch


def _figures(loss: SupportsFloat | None, accuracy: SupportsFloat | None) -> dict[str, Any]:
    figures = {"loss": loss, "accuracy": accuracy}
    return {name: _number(value) for name, value in figures.items() if value is not None}


def _number(value: SupportsFloat) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)  # JSON knows no such numbers


def _say(message: dict[str, Any]) -> None:
    """One line in one write, which no other process can come between."""
    global _out
    assert _out is not None
    message["trainmark"] = VERSION
    try:
        os.write(_out, json.dumps(message, separators=(",", ":")).encode() + b"\n")
    except OSError:  # trainmark is gone, and the training goes on without it
        _out = None


def _opened() -> int | None:
    """The descriptor of whoever listens; None where nobody does, or where another process of a training speaks."""
    place = os.environ.get(VARIABLE)
    if not place or any(os.environ.get(rank, "0") != "0" for rank in _RANKS):
        return None
    if place.isdigit():
        return int(place)
    try:
        out = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)  # a pipe that nobody reads is refused
        os.set_blocking(out, True)
    except OSError:
        return None
    return out


_out = _opened()
_epochs = 0
_waited: float | None = None
"""Seconds of this epoch; None until something is waited for."""
if _out is not None:
    _say({"event": "hello", "t": time.perf_counter(), "language": "Python " + sys.version.split()[0]})
