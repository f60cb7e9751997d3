from __future__ import annotations

import math

import pytest

from trainmark import units


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 3, "0"),
        (1, 3, "1.00"),
        (3.14159, 3, "3.14"),
        (31.4159, 3, "31.4"),
        (314.159, 3, "314"),
        (31415.9, 3, "31,416"),
        (0.0031415, 3, "0.00314"),
        (-2.5, 2, "-2.5"),
        (2.302585, 4, "2.303"),
        (1.5e-12, 3, "1.50e-12"),
        (6.02e23, 3, "6.02e+23"),
        (math.nan, 3, "NaN"),
        (math.inf, 3, "inf"),
        (-math.inf, 3, "-inf"),
    ],
)
def test_significant(value: float, digits: int, text: str) -> None:
    assert units.significant(value, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.996, "10.0"), (99.96, "100"), (0.9996, "1.00"), (-9.999, "-10.0")],
)
def test_rounding_up_to_the_next_power_of_ten_adds_no_digit(value: float, text: str) -> None:
    assert units.significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.2e-6, "3.20 µs"),
        (0.041, "41.0 ms"),
        (0.9994, "999 ms"),
        (7.31, "7.31 s"),
        (119, "119 s"),
        (120, "2 min 0 s"),
        (725, "12 min 5 s"),
        (3599.7, "1 h 0 min"),
        (7384, "2 h 3 min"),
        (math.nan, "NaN"),
        (None, "-"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (512, "512 B"),
        (1024, "1.00 KiB"),
        (149 * 2**20, "149 MiB"),
        (3 * 2**40, "3.00 TiB"),
        (5 * 2**50, "5,120 TiB"),
    ],
)
def test_bytes(value: float, text: str) -> None:
    assert units.bytes_(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (50_816, "50.8 kFLOP"),
        (961_000, "961 kFLOP"),
        (13.4778e9, "13.5 GFLOP"),
        (1.348e15, "1.35 PFLOP"),
    ],
)
def test_flops(value: float, text: str) -> None:
    assert units.flops(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(594.4, "594 x/s"), (11_312, "11.3k x/s"), (25_000_000, "25.0M x/s")]
)
def test_rate(value: float, text: str) -> None:
    assert units.rate(value, "x/s") == text


def test_count_loss_percent_and_ratio() -> None:
    assert units.count(21_840, "parameters") == "21,840 parameters"
    assert units.count(0) == "0"
    assert units.loss(2.302585) == "2.303"
    assert units.percent(0.98331) == "98.33 %"
    assert units.percent(0.5, 0) == "50 %"
    assert units.ratio(2.414) == "2.41×"


@pytest.mark.parametrize(
    "write", [units.seconds, units.count, units.flops, units.bytes_, units.percent, units.loss]
)
def test_unknown_is_never_a_number(write: object) -> None:
    assert callable(write)
    assert write(None) == units.MISSING


@pytest.mark.parametrize(
    ("iso", "text"),
    [
        ("2026-11-21T17:29:08+00:00", "2026-11-21 17:29 UTC"),
        ("2026-11-21T00:10:00+02:00", "2026-11-20 22:10 UTC"),
        ("2026-11-21T17:29:08", "2026-11-21T17:29:08"),
        ("yesterday", "yesterday"),
    ],
)
def test_moment(iso: str, text: str) -> None:
    assert units.moment(iso) == text


def test_many() -> None:
    assert (units.many(0, "run"), units.many(1, "run"), units.many(1200, "step")) == (
        "0 runs",
        "1 run",
        "1,200 steps",
    )
