"""The precisions of a training. This table and a backend's own ``precision.py`` are all that a new one needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from trainmark.errors import UnknownName

Precision = Literal["fp32", "tf32", "bf16", "fp16", "fp64"]


@dataclass(frozen=True)
class Arithmetic:
    """What a precision means, whatever computes in it.

    Args:
        fraction_bits: of the factors of products; from these follows the tolerance of parity.
        value_bytes: of a stored weight, optimiser state or input.
        mixed: whether weights stay float32 and the factors of products are rounded to fewer bytes.
        largest: finite value where its range is narrower than float32's, else None.
    """

    fraction_bits: int
    value_bytes: int = 4
    mixed: bool = False
    largest: float | None = None


PRECISIONS: dict[str, Arithmetic] = {
    "fp32": Arithmetic(23),
    "tf32": Arithmetic(10),
    "bf16": Arithmetic(7, mixed=True),
    "fp16": Arithmetic(10, mixed=True, largest=65_504.0),
    "fp64": Arithmetic(52, value_bytes=8),
}


def precision_named(name: str) -> Precision:
    """The precision of that name; raises :class:`~trainmark.errors.UnknownName`."""
    if name not in PRECISIONS:
        raise UnknownName("precision", name, PRECISIONS)
    return cast(Precision, name)


def listed(*, mixed: bool = True) -> str:
    """All names, as ``fp32, tf32 or fp64``; without ``mixed``, those whose weights are rounded nowhere."""
    *others, last = (name for name, arithmetic in PRECISIONS.items() if mixed or not arithmetic.mixed)
    return f"{', '.join(others)} or {last}"
