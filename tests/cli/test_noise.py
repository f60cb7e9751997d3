"""``trainmark noise``: what it refuses, and what its table says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from tests.unit.analysis.test_noise import drawn, sides
from trainmark.analysis.noise import Noise, noise_of
from trainmark.cli.main import run
from trainmark.report.noise_table import noise_table
from trainmark.report.table import Table


@pytest.mark.parametrize("option", ["--backend", "--style", "--device"])
@pytest.mark.parametrize("verb", ["noise", "explain"])
def test_one_side_at_a_time(verb: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, "mnist-mlp128", option, "a,b"]) == 2
    assert f"only one side at a time: expected one {option}, found a, b" in capsys.readouterr().err


def table(rounds: Sequence[Sequence[float]], seconds: float, others: float = 0.0) -> Table:
    one, other = (
        [structs.replace(record, trainmark="0.2.0") for record in side]
        for side in sides(rounds, others)
    )
    found = noise_of(one, other, seconds, 0.03)
    assert isinstance(found, Noise)
    return noise_table(found)


def answer(rounds: Sequence[Sequence[float]], seconds: float, others: float = 0.0) -> str:
    said = table(rounds, seconds, others).answer
    assert said is not None
    return said.text


def test_a_difference_that_a_minute_detects() -> None:
    assert answer(drawn(12, 0.03, 0.01), 60.0).startswith(
        "A comparison of a minute detects differences of "
    )


def test_a_minute_that_holds_too_few_rounds() -> None:
    said = answer(drawn(6, 0.03, 0.01), 180.0)
    begin, _, end = said.partition(". ")
    assert begin == "A minute holds only 2 rounds, fewer than the 3 for an interval"
    assert end.startswith("A comparison of ten minutes detects differences of ")
    assert "undisturbed" not in said


def test_a_budget_that_holds_too_few_rounds() -> None:
    said = answer(drawn(2, 0.03, 0.01), 60.0)
    assert said.startswith("60.0 s held only 2 rounds, too few") and said.endswith(
        "use --budget 90 or more."
    )


def test_a_machine_that_others_disturb() -> None:
    assert answer(drawn(6, 0.03, 0.01), 60.0, others=0.5).startswith(
        "Other programs disturb this machine too much"
    )


def test_one_line_has_all_that_a_publication_states() -> None:
    (line,) = table(drawn(6, 0.03, 0.01), 60.0).conditions
    for said in (
        "Xeon 8481C, 2 usable cores, 2 threads",
        "mnist-mlp512, numpy 2.1.0 fast fp32 cpu",
        "Python 3.11.2, trainmark 0.2.0",
        "2026-11-21",
        "6 rounds in 60.0 s, 24 blocks, 0 excluded",
    ):
        assert said in line
