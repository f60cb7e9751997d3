"""An answer says nothing that contradicts the numbers next to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmark.analysis.causes import Found
from trainmark.analysis.changes import SAMPLED, Finding, sampled
from trainmark.analysis.experiments import experiment
from trainmark.analysis.statistics import Estimate
from trainmark.report.contradictions import Measured, Statement, agreeing, contradiction
from trainmark.report.script_answer import answers

CAUSE = Found("pandas", "A table is read row by row", "Convert it once", "a source", "a.py:9", 0.8)


def found(change: str, low: float, high: float, **more: object) -> Finding:
    about = experiment(change)
    estimate = Estimate((low * high) ** 0.5, low, high)
    fields = {"learning": "same", "proof": "", "place": None, **more}
    return Finding(change, about.kind, about.part, estimate, True, **fields)  # type: ignore[arg-type]


IDLE = found("fused", 0.97, 1.02)
WINS = found("threads=1", 1.4, 1.6)
UNCLEAR = found("channels-last", 0.8, 1.9)
OF_SAMPLES = found("line", 4.0, 6.0, proof=SAMPLED, cause=CAUSE)
BUSY = ", while other programs used the machine"


@pytest.mark.parametrize(
    ("said", "measured", "why"),
    [
        (Statement("Use it.", (IDLE,)), Measured([IDLE]), "gain nothing"),
        (
            Statement("Use it.", (replace(IDLE, speedup=Estimate(1.5, 1.4, 1.6)),)),
            Measured([IDLE]),
            "gain nothing",
        ),
        (
            Statement("9×", (replace(OF_SAMPLES, speedup=Estimate(9.0, 8.0, 10.0)),)),
            Measured(samples=400),
            "more than all of its share",
        ),
        (
            Statement("Use 4.", (found("workers=4", 1.3, 1.5),)),
            Measured(workers=4),
            "4 worker processes already",
        ),
        (Statement("1.50×.", (WINS,)), Measured(busy=BUSY), "other programs"),
        (Statement("Too noisy.", unclear=(WINS,)), Measured(), "is clear"),
        (Statement("Too noisy.", unclear=(UNCLEAR, IDLE)), Measured(), "is clear"),
        (
            Statement("Too noisy.", unclear=(replace(UNCLEAR, cause=CAUSE),)),
            Measured(shares={"pandas": 0.81}),
            "half of the time",
        ),
    ],
)
def test_a_contradiction_is_left_out(said: Statement, measured: Measured, why: str) -> None:
    reason = contradiction(said, measured)
    assert reason is not None and why in reason
    other = Statement("Your slowest line is a.py:9.")
    assert agreeing([said, other], measured) == [other]


@pytest.mark.parametrize(
    ("said", "measured"),
    [
        (Statement("1.50×.", (WINS,)), Measured([WINS, IDLE])),
        (Statement(f"1.50×{BUSY}.", (WINS,)), Measured([WINS], busy=BUSY)),
        (
            Statement("5×", (replace(OF_SAMPLES, speedup=sampled(0.8, 400)),)),
            Measured(samples=400),
        ),
        (Statement("Use 4.", (found("workers=4", 1.3, 1.5),)), Measured(workers=2)),
        (Statement("Use 2.", (found("workers=2", 1.3, 1.5),)), Measured(workers=16)),
        (Statement("Too noisy.", unclear=(UNCLEAR,)), Measured(shares={"pandas": 0.81})),
        (Statement("Nothing helps."), Measured([IDLE], busy=BUSY)),
    ],
)
def test_what_agrees_is_shown(said: Statement, measured: Measured) -> None:
    assert contradiction(said, measured) is None


def test_without_consistent_advice_nothing_helps() -> None:
    too_large = replace(OF_SAMPLES, speedup=Estimate(9.0, 8.0, 10.0))
    first, *_ = answers([too_large], (), {"a.py:9": 0.8}, samples=400)
    assert first == (
        "None of the changes tried makes this script clearly faster. Its slowest line is a.py:9, "
        "with 80 % of the time."
    )


def test_a_cause_with_a_large_share_is_never_too_noisy() -> None:
    unclear = replace(found("same-batch", 0.9, 6.0), cause=CAUSE)
    sentences = answers([unclear], (), {"a.py:9": 0.8}, causes=[CAUSE])
    assert sentences[0] == (
        "A table is read row by row (a.py:9): 80 % of the time. Convert it once."
    )
    assert "noisy" not in " ".join(sentences)


def test_a_cause_stays_if_one_of_its_cures_is_unclear() -> None:
    cause = replace(CAUSE, changes=("fused", "channels-last"))
    findings = [replace(IDLE, cause=cause), replace(UNCLEAR, cause=cause)]
    sentences = answers(findings, (), {"a.py:9": 0.8}, causes=[cause])
    assert sentences[0] == "A table is read row by row (a.py:9): 80 % of the time. Convert it once."


def test_a_vague_stack_has_no_exact_parts() -> None:
    alone = found("foreach", 1.1, 20.0)
    parts = (alone, replace(alone, change="foreach+bf16", speedup=Estimate(6.0, 1.2, 30.0)))
    first, *_ = answers([], parts, {})
    assert "Together, the script is at least 1.20× faster" in first
    assert "alone gives" not in first and "adds" not in first
