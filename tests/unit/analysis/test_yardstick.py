from __future__ import annotations

import dataclasses

import pytest

from tests.records import rounds
from trainmark.analysis.comparison import compare
from trainmark.analysis.results import Comparison
from trainmark.analysis.yardstick import Rate, Yardstick, device_references, measured
from trainmark.report.tables import comparison_markdown
from trainmark.workload import catalog


def rate(pace: float, backend: str = "numpy", style: str = "fast", precision: str = "fp32") -> Rate:
    step = catalog.find("mnist-mlp512").step_fingerprint
    return Rate("mnist-mlp512", step, backend, "2.1.0", style, precision, pace, 5)


def xeon(*rates: Rate, cores: int = 2) -> Yardstick:
    return Yardstick("Xeon 8481C", "cpu", cores, "measured in 2026", list(rates))


GPU = Yardstick(
    "NVIDIA H200", "accelerator", None, "measured in 2026", [rate(3e6, "jax"), rate(2e6)]
)


def thirty_thousand() -> Comparison:
    return compare(rounds([2.0] * 3))


def test_the_same_model_is_compared_like_with_like() -> None:
    (mine, *others) = device_references(
        thirty_thousand(), [GPU, xeon(rate(60_000), rate(90_000, "torch"))]
    )
    assert (mine.same_model, mine.ratio) == (True, pytest.approx(0.5))
    assert [each.same_model for each in others] == [False, False]


def test_the_fastest_reference_of_another_device_is_shown() -> None:
    (h200,) = [
        each for each in device_references(thirty_thousand(), [GPU]) if each.device == "NVIDIA H200"
    ]
    assert h200.samples_per_second == 3e6
    assert h200.how.startswith("jax")
    assert h200.ratio == pytest.approx(0.01)


def test_what_was_published_with_its_hardware_named() -> None:
    (published,) = device_references(thirty_thousand(), [])
    assert "K520" in published.device
    assert published.samples_per_second == pytest.approx(60_000 / 8)


def test_a_record_without_examples_has_no_comparison() -> None:
    assert device_references(compare(rounds([2.0] * 3, train_examples=0)), []) == ()


@pytest.mark.parametrize("other", [xeon(rate(1e5, precision="bf16")), xeon(rate(1e5, "torch"))])
def test_what_is_not_alike_is_left_out(other: Yardstick) -> None:
    assert not [each for each in device_references(thirty_thousand(), [other]) if each.same_model]


def test_as_many_cores_make_the_same_cpu() -> None:
    (first, *_) = device_references(thirty_thousand(), [xeon(rate(60_000), cores=64)])
    assert not first.same_model


def test_the_sentence() -> None:
    comparison = thirty_thousand()
    told = dataclasses.replace(
        comparison, references=device_references(comparison, [xeon(rate(48_400))])
    )
    assert (
        "cpu reaches 62 % of the reference for the same model in mnist-mlp512"
        in comparison_markdown(told)
    )


def test_what_ships_can_be_read() -> None:
    for yardstick in measured():
        assert yardstick.rates


def test_yardsticks_have_the_fingerprints_of_the_catalogue() -> None:
    rates = [rate for yardstick in measured() for rate in yardstick.rates]
    assert rates
    assert all(
        rate.step_fingerprint == catalog.find(rate.workload).step_fingerprint for rate in rates
    )
