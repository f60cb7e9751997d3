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
TURNS = "TRAINMARK_TURNS"
"""Of the environment: the file that says when this training may go on; absent where it need not pause."""
FEWEST_STEPS = 2
"""Of a slice, where single steps are seen."""
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
        _pace.pause()
        _say({"event": "begin", "t": _pace.goes_on()})


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
    global _batches, _epochs, _waited
    if _out is None:
        return
    said = _figures(loss, accuracy)
    counts = {"examples": examples, "steps": steps}
    said.update((name, int(value)) for name, value in counts.items() if value is not None)
    said.update(event="epoch", index=_epochs, t=time.perf_counter() if ended is None else ended)
    if _batches:
        said["batches"], _batches = _batches, 0
    if _waited is not None:
        said["data_wait_seconds"], _waited = _waited, 0.0
    if _epochs == 0:
        loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in _FRAMEWORKS}
        said["packages"] = {name: str(version) for name, version in loaded.items() if version is not None}
    _epochs += 1
    _say(said)
    if "batches" not in said:  # then no smaller step is seen
        _pace.stepped(said["t"], fewest=1)
        if ended is None:  # else the test lies behind us, and has yet to be told
            _pace.pause()


def test(loss: SupportsFloat | None = None, accuracy: SupportsFloat | None = None) -> None:
    """The test after an epoch has ended; the time it took is not part of any epoch.

    Args:
        loss: of examples that were not trained on.
        accuracy: of the same, 0 to 1.
    """
    global _waited
    if _out is not None:
        _waited = None if _waited is None else 0.0
        _say({**_figures(loss, accuracy), "event": "test", "t": _pace.goes_on()})


def batches(loader: Iterable[_T]) -> Iterator[_T]:
    """What ``loader`` gives, one after the other; how long that keeps the training waiting is told with the epoch.

    For training examples only: what is done with a batch is a step, and between two of them this training may have to
    wait for its turn.
    """
    global _batches, _waited
    if _out is None:
        yield from loader
        return
    source = None
    _pace.pause()
    _pace.goes_on()
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
        _batches += 1
        _pace.stepped(time.perf_counter(), FEWEST_STEPS)
        _pace.pause()


class _Pace:
    """Where sides of a comparison take turns: trains when it is this one's, and tells of each slice."""

    def __init__(self) -> None:
        place = os.environ.get(TURNS)
        self._turns = open(place) if place and _out is not None else None  # noqa: PTH123, SIM115  as long as we live
        self._over = self._untimed = True
        self._target = self._untimed_target = self._mark = self._start = self._seconds = 0.0
        self._steps = 0

    def goes_on(self) -> float:
        """What comes now is training, and what was before is not; returns the time."""
        self._mark = time.perf_counter()
        return self._mark

    def stepped(self, now: float, fewest: int) -> None:
        """One more step is done; a slice has at least so many."""
        if self._turns is None or self._over:
            return
        self._seconds += now - self._mark
        self._mark = now
        self._steps += 1
        if self._untimed and fewest > 1:
            if self._seconds >= self._untimed_target:
                _synchronize()
                self._start, self._seconds, self._steps, self._untimed = self.goes_on(), 0.0, 0, False
        elif self._seconds >= self._target and self._steps >= fewest:
            _synchronize()
            self._seconds += time.perf_counter() - now
            self._over = True
            counted = {"start": self._start, "steps": self._steps, "seconds": self._seconds}
            _say({"event": "slice", "t": self.goes_on(), **counted})

    def pause(self) -> None:
        """Wait for the next turn, if this one is over."""
        if self._turns is None or not self._over:
            return
        _say({"event": "pause", "t": time.perf_counter(), "settled": _epochs > 0})
        try:
            self._target, self._untimed_target = map(float, self._turns.readline().split())
        except ValueError:  # trainmark is gone
            self._target, self._untimed_target = math.inf, 0.0
        self._start, self._seconds, self._steps = self.goes_on(), 0.0, 0
        self._over, self._untimed = False, True
        _say({"event": "resume", "t": self._start})


def _synchronize() -> None:
    """Wait for what a framework has queued on a GPU."""
    torch: Any = sys.modules.get("torch")
    for name in ("cuda", "xpu"):
        vendor = getattr(torch, name, None)
        if vendor is not None and vendor.is_initialized():
            vendor.synchronize()
    if torch is not None and torch.backends.mps.is_available():
        torch.mps.synchronize()
    tensorflow: Any = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.test.experimental.sync_devices()
    jax: Any = sys.modules.get("jax")
    if jax is not None:
        for device in jax.local_devices():  # each computes in the order that it is asked
            (jax.device_put(0.0, device) + 1).block_until_ready()


def _figures(loss: SupportsFloat | None, accuracy: SupportsFloat | None) -> dict[str, Any]:
    figures = {"loss": loss, "accuracy": accuracy}
    return {name: _number(value) for name, value in figures.items() if value is not None}


def _number(value: SupportsFloat) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)  # JSON knows no such numbers


def _say(message: dict[str, Any]) -> None:
    """One line in one write, which no other process can come between."""
    global _out
    if _out is None:
        return
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
_pace = _Pace()
_epochs = _batches = 0
_waited: float | None = None
"""Seconds of this epoch; None until something is waited for."""
if _out is not None:
    _say({"event": "hello", "t": time.perf_counter(), "language": "Python " + sys.version.split()[0]})
