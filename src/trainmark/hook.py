"""Report the epochs of your own training script to trainmark.

    from trainmark import hook

    for epoch in range(epochs):
        ...
        hook.epoch(loss=loss, accuracy=accuracy, examples=len(data))
        hook.test(accuracy=right / len(test_data))

Outside ``trainmark measure`` this does nothing and costs next to nothing. It needs only the
standard library of Python 3.8 or newer, so you can copy this file into a project that does not
depend on trainmark. docs/protocol.md describes the messages, for programs in other languages.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, SupportsFloat, TypeVar

__all__ = ["batches", "begin", "epoch", "is_listening", "test"]

VARIABLE = "TRAINMARK_HOOK"
"""Environment variable with the file, or the number of the file descriptor, that messages are
written to."""
TURNS = "TRAINMARK_TURNS"
"""Environment variable with the file that says when this training may continue; unset if it never
has to pause."""
FEWEST_STEPS = 2
"""Minimum number of steps of a slice, if single steps are reported."""
VERSION = 1
_T = TypeVar("_T")
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "numpy", "lightning", "transformers")


def is_listening() -> bool:
    """Check whether trainmark is listening; you need this only to skip work that prepares a report.

    Returns:
        False outside ``trainmark measure``, and on all ranks of a distributed training but the
        first.
    """
    return _out is not None


def begin() -> None:
    """Start an epoch; call this right before its first step.

    If you don't call this, an epoch starts when the previous epoch or its test ended, and the first
    one when this module was imported.
    """
    global _waited
    if _out is not None:
        _waited = None if _waited is None else 0.0  # earlier waits are not part of this epoch
        _pace.pause()
        _send({"event": "begin", "t": _pace.goes_on()})


def epoch(
    loss: SupportsFloat | None = None,
    accuracy: SupportsFloat | None = None,
    examples: int | None = None,
    steps: int | None = None,
    ended: float | None = None,
) -> None:
    """Report that an epoch has ended; call this before testing.

    Args:
        loss: mean loss of the training examples: a number, or anything that ``float`` accepts.
            Reading a GPU tensor waits for the device, so the time is correct; otherwise synchronise
            before this call.
        accuracy: training accuracy, 0 to 1.
        examples: number of examples trained on in this epoch.
        steps: number of steps in this epoch.
        ended: ``time.perf_counter()`` at the end of the epoch, in seconds, if you report it later;
            if not given, now.
    """
    global _batches, _epochs, _waited
    if _out is None:
        return
    message = _figures(loss, accuracy)
    counts = {"examples": examples, "steps": steps}
    message.update((name, int(value)) for name, value in counts.items() if value is not None)
    message.update(event="epoch", index=_epochs, t=time.perf_counter() if ended is None else ended)
    if _batches:
        message["batches"] = _batches
        _batches = 0
    if _waited is not None:
        message["data_wait_seconds"] = _waited
        _waited = 0.0
    if _epochs == 0:
        message["packages"] = _versions()
    _epochs += 1
    _send(message)
    if "batches" not in message:  # then single steps are not reported
        _pace.stepped(message["t"], fewest=1)
        if ended is None:  # else the test is over too, but not reported yet
            _pace.pause()


def _versions() -> dict[str, str]:
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in _FRAMEWORKS}
    return {name: str(version) for name, version in loaded.items() if version is not None}


def test(loss: SupportsFloat | None = None, accuracy: SupportsFloat | None = None) -> None:
    """Report that the test after an epoch has ended; its time is not part of any epoch.

    Args:
        loss: mean loss of the test examples.
        accuracy: test accuracy, 0 to 1.
    """
    global _waited
    if _out is not None:
        _waited = None if _waited is None else 0.0
        _send({**_figures(loss, accuracy), "event": "test", "t": _pace.goes_on()})


def batches(loader: Iterable[_T]) -> Iterator[_T]:
    """Iterate over ``loader``, and report with the epoch how long the training waited for it.

    Use this for training examples only: each batch counts as a step, and between two steps the
    training may be paused while another side runs.

    Args:
        loader: your data loader, or any other iterable of batches.

    Yields:
        The loader's batches, unchanged.
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
            source = iter(loader) if source is None else source  # this may start processes
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
    """Pauses this training while other sides of an interleaved comparison run.

    It reports each slice.
    """

    def __init__(self) -> None:
        place = os.environ.get(TURNS)
        # Open until exit
        self._turns = open(place) if place and _out is not None else None  # noqa: PTH123, SIM115
        self._over = self._untimed = True
        self._target = self._untimed_target = self._mark = self._start = self._seconds = 0.0
        self._steps_a_second = 0.0
        self._steps = 0
        self._passes = 0

    def goes_on(self) -> float:
        # Start counting training time; returns the current time in seconds.
        self._mark = time.perf_counter()
        return self._mark

    def stepped(self, now: float, fewest: int) -> None:
        # Count a finished step; a slice has at least ``fewest`` steps.
        if self._turns is None or self._over:
            return
        self._seconds += now - self._mark
        self._mark = now
        self._steps += 1
        if self._untimed and fewest > 1:
            if self._length() >= self._untimed_target:
                _synchronize()
                self._start = self.goes_on()
                self._seconds = 0.0
                self._steps = 0
                self._passes = 0
                self._untimed = False
        elif self._length() >= self._target and self._steps >= fewest:
            _synchronize()
            self._seconds += time.perf_counter() - now
            self._over = True
            counted = {"start": self._start, "steps": self._steps, "seconds": self._seconds}
            if self._passes:
                counted["passes"] = self._passes
            _send({"event": "slice", "t": self.goes_on(), **counted})

    def _length(self) -> float:
        # Seconds so far or, if the turn counts steps, those that they stand for.
        return self._steps / self._steps_a_second if self._steps_a_second else self._seconds

    def pause(self) -> None:
        # Wait for the next slice, if this one is over.
        if self._turns is None or not self._over:
            return
        settled = _epochs > 0
        now = time.perf_counter()
        _send({"event": "pause", "t": now, "settled": settled, "counts_steps": True})
        try:
            lengths = [float(word) for word in self._turns.readline().split()]
            self._target, self._untimed_target, self._steps_a_second = (*lengths, 0.0)[:3]
        except ValueError:  # trainmark has ended
            self._target = math.inf
            self._untimed_target = 0.0
        self._start = self.goes_on()
        self._seconds = 0.0
        self._steps = 0
        self._passes = 0
        self._over = False
        self._untimed = True
        _send({"event": "resume", "t": self._start})


def _synchronize() -> None:
    """Wait for all work that a framework has queued on a GPU."""
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
        for device in jax.local_devices():  # each device computes in order of submission
            (jax.device_put(0.0, device) + 1).block_until_ready()


def _figures(loss: SupportsFloat | None, accuracy: SupportsFloat | None) -> dict[str, Any]:
    figures = {"loss": loss, "accuracy": accuracy}
    return {name: _number(value) for name, value in figures.items() if value is not None}


def _number(value: SupportsFloat) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)  # JSON has no such numbers


def _send(message: dict[str, Any]) -> None:
    """Write one line in a single write, so that other processes can't interleave with it."""
    global _out
    if _out is None:
        return
    message["trainmark"] = VERSION
    try:
        os.write(_out, json.dumps(message, separators=(",", ":")).encode() + b"\n")
    except OSError:  # trainmark has ended; the training continues without it
        _out = None


def _opened() -> int | None:
    """Return trainmark's file descriptor.

    The result is None if it is not listening, or if another rank reports this training.
    """
    place = os.environ.get(VARIABLE)
    if not place or any(os.environ.get(rank, "0") != "0" for rank in _RANKS):
        return None
    if place.isdigit():
        return int(place)
    try:
        # Opening without waiting refuses a pipe that has no reader.
        out = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        os.set_blocking(out, True)
    except OSError:
        return None
    return out


_out = _opened()
_pace = _Pace()
_epochs = _batches = 0
_waited: float | None = None
"""Seconds waited for data in this epoch; None before the first wait."""
if _out is not None:
    _send(
        {"event": "hello", "t": time.perf_counter(), "language": "Python " + sys.version.split()[0]}
    )
