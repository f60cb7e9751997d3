"""The variants that are timed lead to the causes that the analysis names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trainmark.analysis.attribution import Attribution, Dissection, Sitting, attribute, speedup
from trainmark.analysis.statistics import Estimate
from trainmark.backends.base import Options
from trainmark.errors import ExplanationFailed
from trainmark.execute.protocol.worker_commands import Variant
from trainmark.study.explain import require_steady
from trainmark.study.explain.variants import LARGER_TIMES, variants
from trainmark.workload import catalog, layers

PARTS = {"fetch": 0.5, "input": 8.0, "copy": 2.0, "optimizer": 3.0, "loss": 0.4}
DISPATCH = 1.5
LAYERS = {
    "attention": 5.0,
    "layer-norm": 2.0,
    "gelu": 1.0,
    "dense": 3.0,
    "tied-head": 1.6,
    "token-embedding": 0.7,
    "position-embedding": 0.3,
}
STEP = sum(PARTS.values()) + DISPATCH + sum(LAYERS.values())
GPT = catalog.find("shakespeare-gpt")


def seconds(variant: Variant) -> float:
    """Return the seconds of a variant's step on a machine with the costs above."""
    dispatch = 0.0 if variant.options.style == "fast" else DISPATCH
    if variant.workload.batches.size == 1:
        # In a tiny network, only launching its operations takes time.
        return dispatch
    parts = sum(cost for part, cost in PARTS.items() if part not in variant.without)
    kinds = {layer.kind for layer in layers.every(variant.workload.model)}
    return parts + dispatch + sum(LAYERS.get(kind, 0.0) for kind in kinds)


def timed(planned: Sequence[Variant], *, accelerator: bool) -> Dissection:
    """Return the measurements of two processes on such a machine."""
    measured = {variant.name: seconds(variant) for variant in planned}
    sitting = Sitting(rounds=(measured,) * 3, starts=(dict.fromkeys(measured, 0.0),) * 3)
    return Dissection(
        sittings=(sitting, sitting),
        steps_per_epoch=100,
        flops=1.0,
        peak_flops=None,
        batch=12,
        larger=LARGER_TIMES,
        evaluations=(),
        compile_seconds=None,
        steps=100,
        number_of_evaluations=0,
        accelerator=accelerator,
        dropped={},
    )


def variants_of(*, accelerator: bool, fast: bool = True, examples: int = 60_000) -> list[Variant]:
    options = Options("idiomatic", "cuda:0" if accelerator else "cpu", "fp32", 1)
    return list(variants(GPT, options, examples, accelerator=accelerator, fast=fast))


def costs(attribution: Attribution) -> dict[str, float]:
    """Return the seconds of each cause."""
    return {share.cause: share.share * STEP for share in attribution.shares}


@pytest.mark.parametrize("accelerator", [False, True], ids=["on the CPU", "on a GPU"])
def test_the_variants_give_every_cause_its_cost(accelerator: bool) -> None:
    found = attribute(timed(variants_of(accelerator=accelerator), accelerator=accelerator))
    assert found.step_seconds.value == pytest.approx(STEP)
    expected = {
        "epoch": 0.0,
        "fetch": PARTS["fetch"],
        "input": PARTS["input"],
        "copy": PARTS["copy"],
        "optimizer": PARTS["optimizer"],
        "dispatch": DISPATCH,
        "attention": LAYERS["attention"],
        "norms": LAYERS["layer-norm"],
        "memory": LAYERS["gelu"] + PARTS["loss"],
        "embedding": LAYERS["token-embedding"] + LAYERS["position-embedding"],
    }
    assert costs(found) == pytest.approx(expected)
    products = LAYERS["dense"] + LAYERS["tied-head"]
    assert found.unexplained.value * STEP == pytest.approx(products)


def test_launches_are_unknown_on_a_gpu_without_a_captured_step() -> None:
    planned = variants_of(accelerator=True, fast=False)
    found = attribute(timed(planned, accelerator=True))
    assert "dispatch" in found.unknown


def test_the_variant_with_a_larger_batch_has_that_many_examples() -> None:
    planned = variants_of(accelerator=True)
    (larger,) = [each for each in planned if each.name == "larger batch"]
    assert larger.workload.batches.size == 12 * LARGER_TIMES
    found = timed(planned, accelerator=True)
    assert speedup(found, larger.name, LARGER_TIMES).value == pytest.approx(LARGER_TIMES)


def test_too_few_examples_for_a_larger_batch_leave_it_out() -> None:
    names = [each.name for each in variants_of(accelerator=True, examples=12 * LARGER_TIMES - 1)]
    assert "larger batch" not in names


@pytest.mark.parametrize("low", [-0.002, 0.0])
def test_a_step_that_may_take_no_time_is_not_attributed(low: float) -> None:
    with pytest.raises(ExplanationFailed, match="--seconds"):
        require_steady(Estimate(0.004, low, 0.039))


def test_a_step_that_certainly_takes_time_is_attributed() -> None:
    require_steady(Estimate(0.004, 0.001, 0.039))
