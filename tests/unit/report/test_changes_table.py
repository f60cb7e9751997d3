"""The answer about a user's script: a table of what each change gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmark.analysis.causes import Found
from trainmark.analysis.changes import SAMPLED, Curve, Finding
from trainmark.analysis.experiments import experiment
from trainmark.analysis.statistics import Estimate
from trainmark.record.observed import Observed
from trainmark.report.changes_table import changes_table, shares
from trainmark.report.script_answer import answers

SEEN = Observed(
    "torch", (), 101, 2.0, loader_wait_seconds=0.5, evaluation_seconds=0.0, device="cpu"
)


def found(
    change: str, low: float, high: float, learning: Curve = "same", place: str | None = None
) -> Finding:
    about = experiment(change)
    return Finding(
        change,
        about.kind,
        about.part,
        Estimate((low * high) ** 0.5, low, high),
        True,
        learning,
        "",
        place,
    )


CELLS = Found("loop", "A cell is called 60 times", "Use nn.LSTM", "", None, 0.8, is_removed=False)


@pytest.mark.parametrize(("in_steps", "share"), [(None, 1 / 3), (1.0, 1 / 2), (0.5, 1 / 2.5)])
def test_evaluations_have_a_share_of_the_whole_time(in_steps: float | None, share: float) -> None:
    seen = replace(SEEN, evaluation_seconds=1.0, evaluation_in_steps_seconds=in_steps)
    assert shares(seen)["evaluation"] == pytest.approx(share)
    assert shares(seen)["loader wait"] == pytest.approx(share / 2)


def test_no_gain_is_promised_for_what_stays() -> None:
    sampled = replace(found("line", 4.0, 6.0), change="loop", proof=SAMPLED, cause=CELLS)
    table = changes_table("a.py", "torch", 0.1, {}, [sampled], {}, ["Do this."])
    assert (table.rows[0].cells[1].text, table.rows[0].cells[1].value) == ("80 % of the time", None)


def test_the_table_has_shares_and_reasons() -> None:
    findings = [found("same-batch", 1.4, 1.6), found("batch=8", 1.4, 1.6, "worse")]
    findings[1] = replace(findings[1], memory=1.25)
    parts = shares(SEEN)
    table = changes_table(
        "train.py",
        "torch on cpu",
        0.02,
        parts,
        findings,
        {"pin": "no GPU"},
        ["Do this.", "And that."],
    )
    assert table.answer is not None
    assert table.answer.text == "Do this."
    assert table.conditions == ("torch on cpu, 20.0 ms per step; time: loader wait 25 %",)
    assert table.notes == ("And that.", "Left out: pin (no GPU).")
    assert [row.cells[2].text for row in table.rows] == ["diagnosis", "worse"]
    assert table.rows[1].cells[2].tone == "bad"
    assert [row.cells[3].text for row in table.rows] == ["", "1.25×"]


def test_losses_that_need_not_fall_are_not_judged() -> None:
    bf16 = found("bf16", 1.4, 1.6, "unseen")
    first, *rest = answers([bf16], (), {}, learning_unseen="it trains a GAN")
    assert first.endswith("faster; learning is not judged.")
    assert "Learning is not judged: it trains a GAN." in rest


def test_the_reason_is_not_given_if_learning_is_judged() -> None:
    sentences = answers([found("bf16", 1.4, 1.6)], (), {}, learning_unseen="its loss rises")
    assert "not judged" not in " ".join(sentences)


def test_a_chart_has_bars_for_known_gains_alone() -> None:
    pytest.importorskip("altair", reason="trainmark[report] is not installed")
    from trainmark.report.charts.gains import gains

    sampled = replace(found("line", 4.0, 6.0), change="loop", proof=SAMPLED, cause=CELLS)
    assert gains([found("fused", 1.4, 1.6), sampled]).text == "Bars: fused 1.50× [1.40, 1.60]."
