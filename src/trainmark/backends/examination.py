"""What a backend says when it is asked whether it is well: what it was built for, and one small product a device."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

LEFT = ((1, 2, 3), (4, 5, 6))
RIGHT = ((1, 2), (3, 4), (5, 6))
EXPECTED = (22.0, 28.0, 49.0, 64.0)
"""``LEFT @ RIGHT``, row by row."""


@dataclass(frozen=True)
class Product:
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
        products: one a device that it sees.
    """

    built_for: str | None = None
    architectures: tuple[str, ...] | None = None
    blind: str | None = None
    products: tuple[Product, ...] = ()


@runtime_checkable
class Examinable(Protocol):
    """A backend that can be examined; a plug-in need not be."""

    def examine(self) -> Examination:
        """How it stands to the devices that it sees."""


def try_products(devices: Iterable[str], multiply: Callable[[str], tuple[NDArray[Any], str]]) -> tuple[Product, ...]:
    """One product on each device, whatever becomes of the others.

    Args:
        multiply: gives ``LEFT @ RIGHT`` computed on a device, ``[2, 2]``, and where the result lay.
    """
    return tuple(_try(device, multiply) for device in devices)


def _try(device: str, multiply: Callable[[str], tuple[NDArray[Any], str]]) -> Product:
    start = time.perf_counter()
    try:
        values, placed_on = multiply(device)
    except Exception as error:  # noqa: BLE001  (whatever a framework raises is the answer)
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return Product(device, problem=first_line, seconds=time.perf_counter() - start)
    flat = tuple(float(value) for value in np.asarray(values, np.float64).ravel())
    return Product(device, flat, placed_on, time.perf_counter() - start)
