"""Self-check of a backend: what it was built for, and one small product per device."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

LEFT = ((1, 2, 3), (4, 5, 6))
"""Rows of the left factor of the product that tests a device."""
RIGHT = ((1, 2), (3, 4), (5, 6))
"""Rows of its right factor."""
EXPECTED = (22.0, 28.0, 49.0, 64.0)
"""``LEFT @ RIGHT``, row by row."""


@dataclass(frozen=True)
class DeviceProduct:
    """``LEFT @ RIGHT`` on one device.

    Args:
        values: row by row; None if it failed, with the reason in ``problem``.
        placed_on: the device of the result, according to the framework.
        seconds: its duration, including the first use of the device.
    """

    device: str
    values: tuple[float, ...] | None = None
    placed_on: str | None = None
    seconds: float | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Examination:
    """How a framework can use this machine's devices.

    Args:
        built_for: the accelerator that it was built for, such as ``CUDA 13.0``; None for a CPU
            build.
        architectures: what its GPU code was compiled for, such as ``sm_90`` (machine code) and
            ``compute_90`` (compiled at first use); None if it does not say.
        blind: why it sees no GPU, in its own words; None if it gives no reason.
        hidden_by: a framework setting that hides the GPUs, such as ``JAX_PLATFORMS=cpu``.
    """

    built_for: str | None = None
    architectures: tuple[str, ...] | None = None
    blind: str | None = None
    hidden_by: str | None = None


@runtime_checkable
class Examinable(Protocol):
    """A backend that can be examined; optional for plug-ins."""

    def examine(self) -> Examination:
        """Return how it can use this machine's accelerators.

        Called before any device is used, and in parallel with other frameworks, so it should
        prevent the framework from taking all of a device's memory.
        """

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """Compute ``LEFT @ RIGHT`` on ``device`` in float32, ``[2, 2]``.

        Also returns the device of the result.
        """


def try_product(backend: Examinable, device: str) -> DeviceProduct:
    """Try one product, and return its result or error."""
    start = time.perf_counter()
    try:
        values, placed_on = backend.multiply(device)
    except Exception as error:  # noqa: BLE001  (whatever a framework raises is the answer)
        return DeviceProduct(device, problem=first_line(error), seconds=time.perf_counter() - start)
    flat = tuple(float(value) for value in np.asarray(values, np.float64).ravel())
    return DeviceProduct(device, flat, placed_on, time.perf_counter() - start)


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or else its type."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
