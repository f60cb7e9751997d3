"""Format numbers for the user: always with a unit, never with more digits than were measured."""

from __future__ import annotations

import datetime
import math

MISSING = "-"


def significant(value: float, digits: int = 3) -> str:
    """Format ``value`` with ``digits`` significant digits, such as ``0.0123`` or ``12,345``.

    With three digits, values from 1e7 or below 1e-6 have an exponent; below 1e7 all integer digits
    are kept.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")  # 9.996 is 10.0, not 10.00
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{value:,.{max(decimals, 0)}f}" if -4 <= decimals <= 8 else f"{value:.{digits - 1}e}"


def money(amount: float | None) -> str:
    """Format an amount, in the currency of the price."""
    return MISSING if amount is None else significant(amount)


def _scaled(value: float | None, unit: str, prefixes: tuple[str, ...], base: int = 1000) -> str:
    if value is None:
        return MISSING
    for prefix in prefixes:
        if abs(value) < base - 0.5 or prefix == prefixes[-1]:
            break
        value /= base
    return f"{significant(value)} {prefix}{unit}"


def seconds(value: float | None) -> str:
    """Format a duration: ``3.2 µs``, ``41.0 ms``, ``7.31 s``, ``12 min 5 s``."""
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return significant(value)
    if abs(value) < 1e-3:
        return f"{significant(value * 1e6)} µs"
    if abs(value) < 0.9995:
        return f"{significant(value * 1e3)} ms"
    if abs(value) < 120:
        return f"{significant(value)} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def moment(iso: str) -> str:
    """Format an ISO 8601 time with a zone as ``2026-11-21 17:12 UTC``.

    Other text is returned unchanged.
    """
    try:
        at = datetime.datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{at.astimezone(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC" if at.tzinfo else iso


def count(value: float | None, unit: str = "") -> str:
    """Format a count with thousands separators: ``21,840`` or ``21,840 parameters``."""
    return MISSING if value is None else f"{value:,.0f} {unit}".strip()


def many(number: int, noun: str) -> str:
    """Format a count with its noun: ``1 epoch``, ``1,200 steps``, ``2 processes``."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}" + ("" if number == 1 else plural)


def rate(value: float | None, unit: str = "") -> str:
    """Format a throughput such as ``11.3k samples/s``."""
    if value is None:
        return MISSING
    number = significant(value) if abs(value) < 10_000 else f"{significant(value / 1e3)}k"
    if abs(value) >= 9_995_000:
        number = f"{significant(value / 1e6)}M"
    return f"{number} {unit}".strip()


def flops(value: float | None) -> str:
    """Format a number of floating-point operations: ``51 kFLOP``, ``13.5 GFLOP``."""
    return _scaled(value, "FLOP", ("", "k", "M", "G", "T", "P", "E"))


def bytes_(value: float | None) -> str:
    """Format a size in binary units: ``149 MiB``."""
    return _scaled(value, "B", ("", "Ki", "Mi", "Gi", "Ti"), 1024)


def joules(value: float | None) -> str:
    """Format an energy: ``41.2 kJ``."""
    return _scaled(value, "J", ("", "k", "M", "G", "T"))


def percent(value: float | None, digits: int = 2) -> str:
    """Format a fraction as a percentage: ``98.33 %``."""
    return MISSING if value is None else f"{100 * value:.{digits}f} %"


def loss(value: float | None) -> str:
    """Format a loss with four significant digits."""
    return MISSING if value is None else significant(value, 4)


def ratio(value: float | None) -> str:
    """Format a speed-up: ``2.41×``."""
    return MISSING if value is None else f"{significant(value)}×"
