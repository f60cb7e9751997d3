"""Engines of Keras: what differs between TensorFlow, PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from trainmark.backends.base import Device, Options


class Engine(Protocol):
    """One engine; the methods here are defaults.

    Attributes:
        title: its usual spelling.
        version: version of the engine.
        oldest: the oldest version that works.
        newest: the newest version that was tested.
        fast_trainer: the class of its fast trainer.
    """

    title: str
    version: str
    oldest: str
    newest: str
    fast_trainer: Any

    def packages(self) -> dict[str, str]:
        """Return versions of what affects speed or arithmetic."""

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that it sees."""

    def prepare(self, options: Options) -> None:
        """Set threads, device and arithmetic, before anything is computed."""

    def reseed(self, seed: int) -> None:
        """Reseed the engine, if ``fit`` would otherwise repeat the same random numbers."""

    def repeated(self, x: Any, y: Any, steps: int) -> Any:
        """Repeat a batch ``steps`` times, as an input of ``fit`` that costs almost nothing."""
        return ((x, y) for _ in range(steps))

    def synchronize(self, values: Sequence[Any]) -> None:
        """Return when all queued work is done.

        ``values`` are the values that the last step changes.
        """

    def settings(self) -> dict[str, Any]:
        """Return the settings that affect speed or arithmetic, as the engine reports them now."""

    def device_peak_bytes(self) -> int | None:
        """Return its peak memory on the device of :meth:`prepare`.

        The result is None if it does not report it.
        """
