"""The table of measured candidates for PyTorch's ``fast`` on a GPU."""

from __future__ import annotations

import pytest

from trainmark.backends.torch.choices import FAST, STEP_VARIABLE, TABLE, choose
from trainmark.workload import catalog


@pytest.mark.parametrize("row", TABLE, ids=" ".join)
def test_a_row_chooses_the_fastest_of_its_candidates(row: tuple[str, str]) -> None:
    name, precision = row
    assert name in catalog.names()
    chosen = TABLE[row]  # type: ignore[index]
    rates = chosen.evidence.tokens_per_second
    assert max(rates, key=rates.__getitem__) == FAST, "no other candidate was faster"
    found = choose(name, precision, captures=True)  # type: ignore[arg-type]
    assert (found.step, found.by) == (chosen.step, "measured")
    assert found.gain == pytest.approx(rates["trainmark fast"] / rates["eager in a graph"])


def test_what_was_not_measured_is_eager_and_untuned() -> None:
    for name, precision in (
        ("mnist-cnn", "bf16"),
        ("gpt2-124m", "fp32"),
        ("gpt2-124m (depth 2)", "bf16"),
    ):
        found = choose(name, precision, captures=True)  # type: ignore[arg-type]
        assert (found.step, found.by, found.gain) == ("eager", "untuned", None)


def test_without_graphs_the_table_does_not_hold() -> None:
    assert choose("gpt2-124m", "bf16", captures=False).step == "eager"


@pytest.mark.parametrize("step", ["eager", "compiled"])
def test_the_variable_decides_everywhere(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setenv(STEP_VARIABLE, step)
    for captures in (True, False):
        for name in ("gpt2-124m", "mnist-cnn"):
            found = choose(name, "bf16", captures=captures)
            assert (found.step, found.by) == (step, STEP_VARIABLE)
