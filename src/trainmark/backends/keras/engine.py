"""What Keras computes with: the few things that Keras leaves to TensorFlow, PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from trainmark.backends.base import Device, Options


class Engine(Protocol):
    """One engine; the methods here are defaults.

    Attributes:
        title: its usual spelling.
        version: of the engine.
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
        """Versions of what decides speed or arithmetic."""

    def devices(self) -> tuple[Device, ...]:
        """The devices it sees."""

    def prepare(self, options: Options) -> None:
        """Choose threads, device and arithmetic, before anything is computed."""

    def reseed(self, seed: int) -> None:
        """Reseed the engine, if it would otherwise repeat the same random numbers in every ``fit``."""

    def repeated(self, x: Any, y: Any, steps: int) -> Any:
        """The same batch ``steps`` times over, as something that ``fit`` takes and that costs next to nothing."""
        return ((x, y) for _ in range(steps))

    def synchronize(self, values: Sequence[Any]) -> None:
        """Return when all queued work is done; ``values`` are what the last step changes."""

    def settings(self) -> dict[str, Any]:
        """The switches that decide speed or arithmetic, as the engine reports them now."""

    def device_peak_bytes(self) -> int | None:
        """Most memory it held on the device of :meth:`prepare`; None when it does not say."""
