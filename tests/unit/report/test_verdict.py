"""The answer in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from tests.browser.samples import slices
from tests.records import a_record, rounds
from trainmark.analysis.comparison import compare
from trainmark.record.caveats import Caveat
from trainmark.record.record import Outcome, Record, ThreadsSearch
from trainmark.report.chart_data import chart_data
from trainmark.report.verdict import Verdict, verdict


def said(records: Sequence[Record]) -> Verdict:
    (work,) = chart_data(compare(records))
    return verdict(work)


CPU = rounds([2.0, 2.1, 1.9, 2.0])


@pytest.mark.parametrize(
    ("times", "begins", "tone"),
    [
        ([0.5, 0.525, 0.475, 0.5], "cuda:0 is 4.00× [", "good"),
        ([4.0, 4.2, 3.8, 4.0], "cuda:0 is 2.00× [", "bad"),
        ([2.0, 2.1, 1.9, 2.0], "cuda:0 is as fast as cpu, 1.00×", "plain"),
        (
            [1.0, 3.0, 1.5, 4.0],
            "No clear difference: cuda:0 and cpu, ",
            "doubtful",
        ),
    ],
    ids=["faster", "slower", "same", "unclear"],
)
def test_the_answer_compares_one_device_with_the_other(
    times: list[float], begins: str, tone: str
) -> None:
    found = said([*CPU, *rounds(times, device="cuda:0")])
    assert found.text.startswith(begins)
    assert found.tone == tone


def test_slower_is_a_factor_and_not_a_fraction() -> None:
    text = said([*CPU, *rounds([4.0, 4.2, 3.8, 4.0], device="cuda:0")]).text
    assert "2.00× [" in text
    assert "slower than cpu; both learn the same (mnist-mlp512 with numpy fast)." in text


def test_a_side_that_learns_less_is_named() -> None:
    text = said([*CPU, *rounds([1.0, 1.05, 0.95, 1.0], device="cuda:0", test_accuracy=0.9)]).text
    assert "; but its test accuracy is 8.00 points lower (" in text


@pytest.mark.parametrize(
    ("accuracies", "words"),
    [
        ([0.98, 0.981, 0.979, 0.98], "; both learn the same ("),
        ([0.90, 0.99, 0.95, 0.985], "; no clear difference in learning"),
        ([0.95, 0.951, 0.949, 0.95], "; but its test accuracy is 3.00 points lower ("),
    ],
    ids=["same", "unclear", "worse"],
)
def test_a_faster_precision_has_a_judgement_on_learning(
    accuracies: list[float], words: str
) -> None:
    quick = [
        structs.replace(record, final=structs.replace(record.final, test_accuracy=accuracy))
        for record, accuracy in zip(
            rounds([1.0, 1.02, 0.98, 1.0], precision="bf16"), accuracies, strict=True
        )
    ]
    text = said([*CPU, *quick]).text
    assert text.startswith("bf16 is 2.00× [")
    assert words in text


def test_a_run_that_does_not_learn_is_never_called_faster() -> None:
    lazy = rounds([0.1, 0.1, 0.1, 0.1], device="cuda:0", caveats=[Caveat.NOT_LEARNING])
    found = said([*CPU, *lazy])
    assert "cuda:0: some runs did not learn mnist-mlp512" in found.text
    assert "faster" not in found.text
    assert found.tone == "bad"


def test_on_one_device_the_best_side_is_compared_with_the_first() -> None:
    slow = rounds([4.0, 4.1, 3.9], style="idiomatic", created="2026-11-20T10:00:00Z")
    quick = rounds([1.0, 1.02, 0.98])
    assert said([*slow, *quick]).text.startswith("fast is 4.00× [")


def test_a_caveat_makes_a_sure_answer_doubtful() -> None:
    quick = [0.5, 0.525, 0.475, 0.5]
    busy = said([*CPU, *rounds(quick, device="cuda:0", caveats=[Caveat.BUSY_MACHINE])])
    assert "faster" in busy.text
    assert busy.tone == "doubtful"
    assert (
        said([*CPU, *rounds(quick, device="cuda:0", caveats=[Caveat.UNKNOWN_PEAK])]).tone == "good"
    )


@pytest.mark.parametrize("caveat", [Caveat.ONE_EPOCH, Caveat.WIDE_SPREAD])
def test_what_concerns_epochs_does_not_make_slices_doubtful(caveat: Caveat) -> None:
    told = [caveat] if caveat is Caveat.ONE_EPOCH else []
    wide = [0.5, 0.9, 0.5, 0.5] if caveat is Caveat.WIDE_SPREAD else [0.5] * 4
    slow = rounds([2.0] * 4)
    quick = rounds(wide, device="cuda:0", caveats=told)
    assert said([*slow, *quick]).tone == "doubtful", "of epochs"
    slow, quick = (
        [structs.replace(each, slices=slices(pace, orders)) for each in side]
        for side, pace, orders in ((slow, 2.0, (0, 3)), (quick, 0.5, (1, 2)))
    )
    found = said([*slow, *quick])
    assert found.tone == "good"
    assert caveat in found.caveats
    busy = [structs.replace(each, caveats=[Caveat.BUSY_MACHINE]) for each in quick]
    assert said([*slow, *busy]).tone == "doubtful"


def test_a_disturbed_measurement_says_what_to_do() -> None:
    every = []
    for device, pace, orders in (("cpu", 2.0, (0, 3)), ("cuda:0", 0.5, (1, 2))):
        stolen = [structs.replace(each, stolen_share=0.5) for each in slices(pace, orders)]
        every += [
            structs.replace(each, slices=stolen) for each in rounds([pace] * 4, device=device)
        ]
    text = said(every).text
    assert text.startswith(
        "No verdict, because other programs disturbed the machine: cuda:0 and cpu, 4.00× ["
    )
    assert text.endswith("). Measure again when the machine is idle.")


def obviously(pace: float, *, trained: bool) -> Verdict:
    """Return the answer of two rounds of slices in which the GPU takes ``pace`` seconds where the
    CPU takes 2."""
    every = []
    for device, seconds, orders in (("cpu", 2.0, (0, 3)), ("cuda:0", pace, (1, 2))):
        of_device = rounds([seconds] * 2, device=device)
        known = {} if trained else {"epochs": []}
        every += [
            structs.replace(each, slices=slices(seconds, orders), **known) for each in of_device
        ]
    return said(every)


def test_an_obvious_difference_has_a_bound() -> None:
    found = obviously(0.2, trained=True)
    assert found.text.startswith("cuda:0 is at least 6.02× faster than cpu (10.0× in two rounds); ")
    assert found.tone == "good"


def test_an_obvious_difference_can_be_slower() -> None:
    text = obviously(20.0, trained=True).text
    assert text.startswith("cuda:0 is at least 6.02× slower than cpu (10.0× in two rounds); ")


def test_before_a_complete_training_only_steps_are_judged() -> None:
    text = obviously(0.2, trained=False).text
    assert "at least 6.02× faster per step than cpu" in text
    assert "; learning not judged yet (mnist-mlp512" in text


@pytest.mark.parametrize(
    ("status", "counts"), [("failed", False), ("timeout", False), ("interrupted", True)]
)
def test_what_never_completes_a_training_is_not_faster(status: Any, counts: bool) -> None:
    every = []
    for device, seconds, orders in (("cpu", 2.0, (0, 3)), ("cuda:0", 0.2, (1, 2))):
        of_device = rounds([seconds] * 2, device=device)
        every += [
            structs.replace(each, slices=slices(seconds, orders), epochs=[]) for each in of_device
        ]
    lost = structs.replace(every[-1], id="lost", outcome=Outcome(status, "gone"), slices=[])
    (work,) = chart_data(compare([*every, lost]))
    text = verdict(work).text
    assert ("at least" in text) is counts
    assert ("cuda:0: no training of mnist-mlp512" in text) is not counts
    assert any(side.result.speedup.verdict == "faster" for side in work.sides) is counts


@pytest.mark.parametrize(
    ("default", "words"),
    [
        (
            16,
            ", the CPU with its best number of threads (4); "
            "cuda:0 is about 6.00× as fast as the CPU with the default (16); both",
        ),
        (4, ", the CPU with its best number of threads (4), which is the default; both learn"),
    ],
)
def test_the_threads_of_a_cpu_are_named_next_to_a_gpu(default: int, words: str) -> None:
    search = ThreadsSearch(chosen=4, default=default, step_seconds={"4": 0.01, "16": 0.015})
    slow = [structs.replace(record, threads_search=search) for record in rounds([2.0] * 4)]
    text = said([*slow, *rounds([0.5] * 4, device="cuda:0")]).text
    assert text.startswith("cuda:0 is 4.00×")
    assert words in text


def test_few_rounds_are_not_sure() -> None:
    found = said([*rounds([2.0]), *rounds([1.0], device="cuda:0")])
    assert "2.00× as fast as cpu, in too few rounds for a verdict" in found.text
    assert found.tone == "doubtful"
    assert Caveat.FEW_ROUNDS in found.caveats


def test_one_alone_and_none_at_all() -> None:
    assert "there is nothing to compare it with" in said(CPU).text
    found = said(
        [a_record(status="failed", epochs=[]), a_record(status="timeout", round=1, epochs=[])]
    )
    assert found.text == "No run of mnist-mlp512 finished (2 tried)."


def test_failed_runs_are_named_next_to_the_answer() -> None:
    lost = a_record(device="cuda:0", status="failed", round=4, epochs=[])
    found = said([*CPU, *rounds([0.5, 0.525, 0.475, 0.5], device="cuda:0"), lost])
    assert "4.00× [" in found.text
    assert Caveat.FAILED_RUNS in found.caveats


def test_a_device_of_which_every_run_failed_is_named() -> None:
    lost = [
        a_record(device="cuda:0", status="failed", round=number, epochs=[]) for number in range(2)
    ]
    found = said([*CPU, *lost])
    assert "No run of numpy fast cuda:0 finished (2 tried)." in found.text
    assert "can't be compared with" not in found.text


def test_whatever_else_differs_is_named() -> None:
    other = rounds([1.0, 1.05, 0.95], style="idiomatic", precision="bf16", threads=1)
    text = said([*rounds([2.0, 2.1, 1.9]), *other]).text
    assert text.startswith("idiomatic 1 thread bf16 is")
    assert "than fast 2 threads fp32" in text


def test_the_order_of_measuring_does_not_turn_the_answer_round() -> None:
    gpu = rounds([0.5, 0.525, 0.475, 0.5], device="cuda:0")
    assert "cuda:0 is 4.00× [" in said([*gpu, *CPU]).text


def test_a_baseline_is_where_the_answer_starts_from() -> None:
    records = [*CPU, *rounds([0.5, 0.525, 0.475, 0.5], device="cuda:0")]
    (work,) = chart_data(compare(records, baseline=("device", "cuda:0")))
    assert verdict(work).text.startswith("cpu is 4.00× [")


def test_one_group_that_did_not_learn_does_not_hide_one_that_did() -> None:
    gpu = rounds([0.5, 0.525, 0.475, 0.5], device="cuda:0")
    lazy = rounds([0.1] * 4, device="cuda:0", style="idiomatic", caveats=[Caveat.NOT_LEARNING])
    slow = rounds([3.0] * 4, style="idiomatic")
    assert "4.00× [" in said([*CPU, *gpu, *lazy, *slow]).text


def test_the_accelerator_is_named_however_the_sides_are_ordered() -> None:
    search = ThreadsSearch(chosen=4, default=16, step_seconds={"4": 0.01, "16": 0.015})
    slow = [structs.replace(record, threads_search=search) for record in rounds([2.0] * 4)]
    (work,) = chart_data(
        compare([*slow, *rounds([0.5] * 4, device="cuda:0")], baseline=("device", "cuda:0"))
    )
    text = verdict(work).text
    assert text.startswith("cpu is 4.00× [4.00, 4.00] slower than cuda:0")
    assert "; cuda:0 is about 6.00× as fast as the CPU with the default (16)" in text


def test_a_third_side_whose_trainings_failed_is_named() -> None:
    gpu = rounds([0.5, 0.525, 0.475, 0.5], device="cuda:0")
    opened = [structs.replace(each, epochs=[]) for each in rounds([0.1] * 2, device="cuda:1")]
    lost = [
        structs.replace(
            each, id=f"{each.id}-training", slices_in=each.id, outcome=Outcome("failed", "lost")
        )
        for each in opened
    ]
    found = said([*CPU, *gpu, *opened, *lost])
    assert found.text.startswith("cuda:0 is 4.00× [")
    assert found.text.endswith(" No run of numpy fast cuda:1 finished (2 tried).")
