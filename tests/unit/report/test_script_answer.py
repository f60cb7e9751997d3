"""The answer about a user's script: what to do, where, by how much it helps, and what it costs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from trainmark.analysis.causes import Found
from trainmark.analysis.causes.cause import Growing
from trainmark.analysis.changes import SAMPLED, Curve, Finding
from trainmark.analysis.experiments import experiment
from trainmark.analysis.statistics import Estimate
from trainmark.record.observed import Observed
from trainmark.report.script_answer import answers, shortened

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


def test_the_first_sentence_has_the_change_its_line_and_its_gain() -> None:
    first, *_ = answers([found("workers=4", 1.4, 1.6, place="train.py:41")], (), {})
    assert first == (
        "Load batches in worker processes: DataLoader(..., num_workers=4, "
        "persistent_workers=True) (train.py:41). "
        "This is 1.50× [1.40, 1.60] faster and learns the same."
    )


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (found("same-batch", 1.4, 1.6), "Without this, the script was 1.50× [1.40, 1.60] faster."),
        (
            found("batch=8", 1.4, 1.6, "better"),
            "1.50× [1.40, 1.60] faster per example, and learns more in the same time.",
        ),
        (found("fused", 1.4, 1.6, "unclear"), "the effect on learning is unclear"),
        (found("bf16", 1.4, 1.6, "worse"), "bf16 is 1.50× [1.40, 1.60] faster, but harms learning"),
        (
            found("batch=8", 1.4, 1.6, "worse"),
            "batch=8 is 1.50× [1.40, 1.60] faster per example, but learns less",
        ),
        (found("same-batch", 0.9, 1.05), "Not the bottleneck: same-batch."),
        (found("fused", 0.9, 1.05), "Not worth it: fused."),
        (
            found("fused", 0.9, 1.3),
            "Too noisy to tell (stop other programs, or increase --seconds): fused 1.08×",
        ),
    ],
)
def test_a_finding_is_put_into_words(finding: Finding, words: str) -> None:
    assert words in " ".join(answers([finding], (), {}))


@pytest.mark.parametrize("learning", ["worse", "same"])
def test_a_batch_that_learns_no_more_per_second_is_not_advised(
    learning: Curve,
) -> None:
    first, *rest = answers([found("batch=8", 1.4, 1.6, learning)], (), {})
    assert first == "None of the changes tried makes this script clearly faster."
    assert any("in the same time" in each for each in rest)


def test_the_first_sentence_says_that_nothing_wins_and_where_the_time_is() -> None:
    first, second, *_ = answers(
        [found("fp32", 0.85, 2.76), found("fused", 0.9, 1.05)], (), {"a.py:7": 0.81, "a.py:8": 0.1}
    )
    assert first == (
        "None of the changes tried makes this script clearly faster. Its slowest line is a.py:7, "
        "with 81 % of the time."
    )
    assert (
        second == "Too noisy to tell (stop other programs, or increase --seconds): fp32 1.53× "
        "[0.850, 2.76]."
    )
    first, *rest = answers([found("fused", 1.4, 1.6), found("fp32", 0.85, 2.76)], (), {})
    assert first.startswith("Pass fused=True")
    assert any(each.startswith("Too noisy") for each in rest)


def test_what_had_no_time_is_counted_if_nothing_helps() -> None:
    late = {"fused": "not enough time; use --seconds 140", "pin": "no GPU"}
    assert answers([found("bf16", 0.9, 1.05)], (), {}, late)[0].endswith(
        "but 1 more had no time (increase --seconds)."
    )


def test_without_a_winner_the_answer_says_so() -> None:
    first, *rest = answers([found("fused", 0.9, 1.05)], (), {"train.py:3": 0.7, "train.py:4": 0.05})
    assert first.startswith("None of the changes tried makes")
    assert rest[-1] == "Your slowest lines: train.py:3 70 %."


@pytest.mark.parametrize(
    ("left_out", "words"),
    [
        ({}, "No changes were tried."),
        ({"pin": "exit code 1"}, "No change could be measured: exit code 1."),
        ({"fp16": "meant for GPUs; use --only fp16"}, "No change could be measured."),
        (
            {"pin": "exit code 1", "fused": "exit code 1: bind: Address already in use"},
            "No change could be measured: the script listens on a fixed port, so only one of it "
            "can run at a time.",
        ),
    ],
)
def test_without_a_finding_the_answer_says_if_anything_was_tried(
    left_out: dict[str, str], words: str
) -> None:
    assert answers([], (), {}, left_out) == [words]


def test_a_line_that_calls_a_library_is_resolved() -> None:
    inside = {"MLP.forward, models/gpt2.py:7": 0.5, "backward": 0.3, "Log.write, log.py:2": 0.02}
    *_, lines, resolved = answers([found("fused", 1.4, 1.6)], (), {"a.py:5": 1.0}, inside=inside)
    assert lines == "Your slowest lines: a.py:5 100 %."
    assert resolved == (
        "a.py:5 calls a library: 50 % in MLP.forward, models/gpt2.py:7; 30 % in backward."
    )


def test_lines_that_only_queue_their_work_may_wait_for_others() -> None:
    assert answers([], (), {"a.py:5": 1.0}, is_queued=True)[-1] == (
        "Your slowest lines (including waits for earlier lines): a.py:5 100 %."
    )


def test_a_larger_batch_is_not_taken_for_a_size() -> None:
    unclear = [found("batch=8", 0.85, 2.76), found("fused", 0.85, 2.76)]
    assert "batch=8 (8× larger batches) 1.53× [0.850, 2.76], fused" in answers(unclear, (), {})[1]


def test_of_a_wide_interval_only_the_lower_end_is_promised() -> None:
    first, *_ = answers([found("threads=1", 5.0, 200.0)], (), {})
    assert first.endswith("This is at least 5.00× faster and learns the same.")
    whole, *_ = answers([found("threads=1", 5.0, 19.0)], (), {})
    assert "9.75× [5.00, 19.0] faster" in whole


def test_what_was_measured_once_is_not_advised() -> None:
    first, *rest = answers([replace(found("fused", 1.4, 1.6), fresh=False)], (), {})
    assert first == "None of the changes tried makes this script certainly faster."
    assert rest == ["Measured only once, so not confirmed: fused 1.50× [1.40, 1.60]."]


def stacked(change: str, ratio: float) -> Finding:
    speedup = Estimate(ratio, ratio - 0.1, ratio + 0.1)
    return Finding(change, "change", None, speedup, True, "same", "", None)


def test_changes_are_stacked() -> None:
    alone = [found("threads=2", 1.4, 1.6), replace(found("bf16", 1.2, 1.3), place="train.py:9")]
    stack = [stacked("threads=2", 1.5), stacked("threads=2+bf16", 3.0)]
    assert answers([*alone, found("fused", 1.1, 1.2)], stack, {}) == [
        "Make 2 changes: Call torch.set_num_threads(2); Run the model under "
        "torch.autocast(device, torch.bfloat16) (train.py:9). Together, the script is 3.00× "
        "[2.90, 3.10] faster and learns the same: threads=2 alone gives 1.50×, bf16 adds 2.00×.",
        "Pass fused=True to the optimiser. This is 1.15× [1.10, 1.20] faster and learns the same.",
    ]


def test_the_slowest_code_is_shown() -> None:
    slow = replace(found("line", 1.4, 1.6, place="train.py:9"), proof=SAMPLED)
    first, *_ = answers([slow], (), {}, texts={"train.py:9": "clip(weights)"})
    assert first.startswith("Speed up this code, clip(weights) (train.py:9). Without it")


def test_a_stack_with_a_diagnosis_says_what_was_left_out() -> None:
    alone = [found("same-batch", 1.4, 1.6, place="train.py:9"), found("fp32", 1.4, 1.6)]
    both = replace(stacked("same-batch+fp32", 3.0), kind="diagnosis", learning="unseen")
    (first,) = answers(alone, [stacked("same-batch", 1.5), both], {})
    assert first == (
        "Make 2 changes: Speed up loading (train.py:9); Use single precision: avoid float64 "
        "inputs, .double() and set_default_dtype(torch.float64). Together, the script was 3.00× "
        "[2.90, 3.10] faster (tested with: the first batch in every step, without loading): "
        "same-batch alone gives 1.50×, fp32 adds 2.00×. What was tested is no valid training, so "
        "learning is not judged."
    )


SEEN_CAUSE = Found(
    "anomaly-detection",
    "Anomaly detection is on",
    "Turn it off",
    "",
    "a.py:7",
    None,
    ("no-anomaly",),
)
PANDAS = Found("pandas", "Working with pandas takes long", "Index arrays", "", "a.py:22", 0.8)
CELLS = Found("loop", "A cell is called 60 times", "Use nn.LSTM", "", None, 0.8, is_removed=False)


def of_cause(
    cause: Found, low: float, high: float, change: str = "no-anomaly", *, fresh: bool = True
) -> Finding:
    return replace(found(change, low, high), fresh=fresh, cause=cause, place=cause.place)


def sampled_of(cause: Found) -> Finding:
    return replace(of_cause(cause, 4.0, 6.0, "line"), change=cause.name, proof=SAMPLED)


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (
            of_cause(SEEN_CAUSE, 2.0, 2.2),
            "Anomaly detection is on (a.py:7). Turn anomaly detection off: it is meant for "
            "debugging. This is 2.10× [2.00, 2.20] faster and learns the same.",
        ),
        (
            of_cause(SEEN_CAUSE, 2.0, 2.2, fresh=False),
            "This is 2.10× [2.00, 2.20] faster and learns the same (measured only once).",
        ),
        (
            replace(of_cause(SEEN_CAUSE, 2.0, 2.2), memory=1.5),
            "faster and learns the same. It then takes 1.50 times the memory.",
        ),
        (
            of_cause(PANDAS, 2.0, 2.2, "same-batch"),
            "Without this, the script was 2.10× [2.00, 2.20] faster.",
        ),
        (
            sampled_of(PANDAS),
            "Working with pandas takes long (a.py:22): 80 % of the time. Index arrays. Without it, "
            "the script would be about 4.90× [4.00, 6.00] faster.",
        ),
        (sampled_of(CELLS), "A cell is called 60 times: 80 % of the time. Use nn.LSTM."),
    ],
)
def test_a_cause_is_named_first(finding: Finding, words: str) -> None:
    first, *rest = answers([finding, found("fused", 1.4, 1.6)], (), {})
    assert first.endswith(words)
    assert len(rest) == 1


def test_what_grows_comes_before_larger_gains_and_costs_more_later() -> None:
    kept = Growing("a.py:1", "losses", "list", 1.0)
    growing = Found("growing-list", "losses gets longer", "Keep a sum", "", "a.py:9", variable=kept)
    slow = replace(sampled_of(growing), speedup=Estimate(1.2, 1.1, 1.3))
    first, second, *_ = answers([sampled_of(PANDAS), slow], (), {})
    assert first == (
        "losses gets longer (a.py:9). Keep a sum. Without it, the steps that were seen would be "
        "about 1.20× [1.10, 1.30] faster, and later ones more so."
    )
    assert second.startswith("Working with pandas takes long")


def test_a_cause_that_no_experiment_has_judged_is_named() -> None:
    unclear = of_cause(SEEN_CAUSE, 0.5, 3.0)
    said = [answers(findings, (), {}, causes=[SEEN_CAUSE]) for findings in ([], [unclear])]
    assert [first for first, *_ in said] == [
        "Anomaly detection is on (a.py:7). Turn it off. What it costs was not measured.",
        "Anomaly detection is on (a.py:7). Turn it off. What it costs is too noisy to tell.",
    ]


def test_a_cause_that_costs_nothing_is_no_advice() -> None:
    idle = of_cause(SEEN_CAUSE, 0.95, 1.05)
    said = answers([idle], (), {}, causes=[SEEN_CAUSE])
    assert said == [
        "None of the changes tried makes this script clearly faster.",
        "Not worth it: no-anomaly.",
    ]


@pytest.mark.parametrize(
    "finding",
    [
        found("fused", 1.4, 1.6),
        found("same-batch", 1.4, 1.6),
        of_cause(SEEN_CAUSE, 2.0, 2.2),
        sampled_of(PANDAS),
    ],
)
def test_every_promise_says_that_the_machine_was_busy(finding: Finding) -> None:
    first, *_ = answers([finding], (), {}, is_busy=True)
    assert "while other programs used the machine." in first
    stack = [stacked("fused", 1.5), stacked("fused+bf16", 3.0)]
    both, *_ = answers([found("fused", 1.4, 1.6), found("bf16", 1.4, 1.6)], stack, {}, is_busy=True)
    assert "while other programs used the machine:" in both


def test_slow_lines_are_shown_with_their_text() -> None:
    texts = {"a.py:7": "loss.backward()", "a.py:8": "x" * 100}
    *_, last = answers([], (), {"a.py:7": 0.6, "a.py:8": 0.3, "a.py:9": 0.1}, texts=texts)
    assert last == (
        "Your slowest lines: a.py:7 60 % (loss.backward()), "
        f"a.py:8 30 % ({'x' * 59}…), a.py:9 10 %."
    )
    assert shortened("a  =\tb") == "a = b"


def test_nothing_that_gains_nothing_is_advised() -> None:
    """Drawn findings: what was measured to gain nothing is in no sentence that advises."""
    drawn = random.Random(1)
    for _ in range(300):
        names = drawn.sample(["fused", "bf16", "workers=2", "threads=2", "same-batch"], 3)
        findings = []
        for name in names:
            low = drawn.uniform(0.5, 2.0)
            findings.append(replace(found(name, low, low * 1.1), fresh=drawn.random() < 0.7))
        causes = [replace(SEEN_CAUSE, changes=(names[0],))] if drawn.random() < 0.5 else []
        if causes:
            findings[0] = replace(findings[0], cause=causes[0])
        said = answers(findings, (), {"a.py:1": 0.9}, causes=causes)
        idle = [each for each in findings if (each.speedup.high or 0.0) < 1]
        for each in idle:
            (text, *_) = experiment(each.change).advice.partition("{")
            assert not any(sentence.startswith(text) for sentence in said), said
            if causes and each.cause is not None:
                assert not any(causes[0].seen in sentence for sentence in said), said
        advised = [
            sentence for sentence in said if "This is" in sentence or "script was" in sentence
        ]
        assert bool(advised) or said[0].startswith(("None of the changes", "Anomaly")), said
