"""What a backend says when it is asked whether it is well: what it was built for, and one small product a device."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

LEFT = ((1, 2, 3), (4, 5, 6))
RIGHT = ((1, 2), (3, 4), (5, 6))
EXPECTED = (22.0, 28.0, 49.0, 64.0)
"""``LEFT @ RIGHT``, row by row."""


@dataclass(frozen=True)
class DeviceProduct:
    """``LEFT @ RIGHT`` on one device.

    Args:
        values: row by row; None when it failed, and then ``problem`` says why.
        placed_on: where the framework says that the result lies.
        seconds: it took, the first use of the device included.
    """

    device: str
    values: tuple[float, ...] | None = None
    placed_on: str | None = None
    seconds: float | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Examination:
    """How a framework stands to this machine's devices.

    Args:
        built_for: the accelerator that it was built for, such as ``CUDA 13.0``; None for a build without any.
        architectures: what its GPU code was compiled for, such as ``sm_90`` (machine code) and ``compute_90`` (to be
            compiled at first use); None where it does not tell.
        blind: why it sees no GPU, in its own words; None where it gives no reason.
        hidden_by: a framework setting that hides the GPUs, such as ``JAX_PLATFORMS=cpu``.
    """

    built_for: str | None = None
    architectures: tuple[str, ...] | None = None
    blind: str | None = None
    hidden_by: str | None = None


@runtime_checkable
class Examinable(Protocol):
    """A backend that can be examined; a plug-in need not be."""

    def examine(self) -> Examination:
        """How it stands to this machine's accelerators. Asked first, before any device is used: others are being
        asked at the same time, so this is the place to keep it from taking all of a device's memory."""

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """``LEFT @ RIGHT`` computed on ``device`` in float32, ``[2, 2]``, and where the result lay."""


def try_product(backend: Examinable, device: str) -> DeviceProduct:
    """One product, whatever becomes of it."""
    start = time.perf_counter()
    try:
        values, placed_on = backend.multiply(device)
    except Exception as error:  # noqa: BLE001  (whatever a framework raises is the answer)
        return DeviceProduct(device, problem=first_line(error), seconds=time.perf_counter() - start)
    flat = tuple(float(value) for value in np.asarray(values, np.float64).ravel())
    return DeviceProduct(device, flat, placed_on, time.perf_counter() - start)


def first_line(error: BaseException) -> str:
    """What an exception says first, or what it is."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
