"""Training precisions. To add one, extend this table and the ``precision.py`` of backends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from trainmark.errors import UnknownName

Precision = Literal["fp32", "tf32", "bf16", "fp16", "fp64"]


@dataclass(frozen=True)
class Arithmetic:
    """The meaning of a precision, for every backend.

    Args:
        fraction_bits: of the factors of products; they determine the tolerance of parity.
        value_bytes: size of a stored weight, optimiser state or input.
        mixed: whether weights stay float32 while the factors of products are rounded to fewer
            bytes.
        largest: the largest finite value if the range is narrower than float32's, else None.
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
    """Return the precision of that name; raises :class:`~trainmark.errors.UnknownName`."""
    if name not in PRECISIONS:
        raise UnknownName("precision", name, PRECISIONS)
    return cast(Precision, name)


def listed(*, mixed: bool = True) -> str:
    """List all names, as ``fp32, tf32 or fp64``; with ``mixed=False``, without mixed precisions."""
    *others, last = (
        name for name, arithmetic in PRECISIONS.items() if mixed or not arithmetic.mixed
    )
    return f"{', '.join(others)} or {last}"
