"""How PyTorch's ``fast`` runs a step: eager or compiled, captured or not, and what happens if one
of them fails.

No GPU is needed: the compiler runs on the CPU, and a fake graph calls the step that a real one
would replay. Except for the capture itself, the code is the same as on a GPU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.slow import slow
from trainmark.backends.base import EpochPlan, Options
from trainmark.errors import UsageError
from trainmark.workload import catalog
from trainmark.workload.layers import Repeat
from trainmark.workload.size import Size
from trainmark_conformance.cases import WITH_DROPOUT, Case
from trainmark_conformance.contract import PLAIN
from trainmark_conformance.modern import RECIPES

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch._dynamo.utils import counters  # noqa: E402
from torch.torch_version import TorchVersion  # noqa: E402

from trainmark.backends.engines import torch as engines  # noqa: E402
from trainmark.backends.torch.backend import TorchBackend  # noqa: E402
from trainmark.backends.torch.choices import STEP_VARIABLE  # noqa: E402
from trainmark.backends.torch.compiling import random_options  # noqa: E402

# inductor's own use
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")


def with_one_block(case: Case) -> Case:
    """Return the case with each repeated block only once. A second one takes as long to compile."""
    layers = (
        dataclasses.replace(layer, times=1) if isinstance(layer, Repeat) else layer
        for layer in case.workload.model
    )
    return case.changed(model=tuple(layers))


GPT = dataclasses.replace(with_one_block(RECIPES[0]), sizes=(4, 4, 3, 4, 3))
"""A small language model with AdamW, clipping and a rate that changes in every step; the batches
have two sizes."""
DROPOUT = dataclasses.replace(WITH_DROPOUT[0], sizes=(2, 2))
GPT_DROPOUT = Case(
    "GPT dropout", Size(width=12, depth=1, length=6).of(catalog.find("shakespeare-gpt-10m")), (2, 2)
)
THREE_SIZES = dataclasses.replace(PLAIN, sizes=(4, 3, 2, 4))


class RehearsedGraph:
    """Calls the step again, on any device."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.replay = step
        step()


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capture steps as on CUDA."""
    monkeypatch.setattr(engines, "captures", lambda _: True)
    monkeypatch.setattr(engines, "capture", lambda step, _: RehearsedGraph(step))


def trainer(case: Case, precision: str = "fp32") -> Any:
    options = Options("fast", "cpu", precision, seed=1)  # type: ignore[arg-type]
    made = TorchBackend().trainer(case.workload, case.model, case.data, options)
    made.load(case.weights)
    return made


def trained(made: Any, plan: EpochPlan) -> tuple[np.ndarray, np.ndarray]:
    """Train two epochs; returns losses and hits, ``[steps]``."""
    found = []
    for _ in range(2):
        made.begin_epoch(plan)
        found.append(made.read(made.train(len(plan.sizes), lambda: None)))
    return np.concatenate([each.losses for each in found]), np.concatenate(
        [each.hits for each in found]
    )


def eager(case: Case, precision: str = "fp32") -> tuple[np.ndarray, np.ndarray]:
    return trained(trainer(case, precision), case.plan)


def test_on_a_cpu_the_step_is_eager_by_default() -> None:
    made = trainer(GPT)
    assert not made.compile(GPT.plan)
    assert made.settings()["step"] == "eager"
    assert made.settings()["step_chosen_by"] == "default"


@pytest.mark.usefixtures("rehearsed")
def test_a_workload_that_was_not_measured_is_untuned() -> None:
    made = trainer(GPT)
    assert made.compile(GPT.plan)
    settings = made.settings()
    assert (settings["step"], settings["step_chosen_by"], settings["cuda_graphs"]) == (
        "eager",
        "untuned",
        2,
    )


def test_an_unknown_step_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STEP_VARIABLE, "faster")
    with pytest.raises(UsageError, match=r"expected eager or compiled, or unset, found 'faster'"):
        trainer(GPT)


@pytest.mark.parametrize("precision", ["fp32", slow("bf16")])
def test_a_compiled_step_learns_and_counts_the_same(
    monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    losses, hits = eager(GPT, precision)
    monkeypatch.setenv(STEP_VARIABLE, "compiled")
    made = trainer(GPT, precision)
    assert made.compile(GPT.plan)
    found, counted = trained(made, GPT.plan)
    assert made.settings()["step"] == "compiled"
    np.testing.assert_allclose(found, losses, rtol=1e-5 if precision == "fp32" else 0.02)
    if precision == "fp32":  # in 16 bits, another rounding may change a prediction
        np.testing.assert_array_equal(counted, hits)


def test_each_batch_size_is_compiled_once_and_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """With dynamic shapes, the second size would be compiled for all others, and the third one not
    at all."""
    torch.compiler.reset()  # another test of this process may have compiled the same
    monkeypatch.setenv(STEP_VARIABLE, "compiled")
    made = trainer(THREE_SIZES)
    before = counters["stats"]["unique_graphs"]
    made.compile(THREE_SIZES.plan)
    compiled = counters["stats"]["unique_graphs"]
    trained(made, THREE_SIZES.plan)
    assert compiled - before == 3
    assert counters["stats"]["unique_graphs"] == compiled


@pytest.mark.parametrize("step", ["eager", "compiled"])
@pytest.mark.usefixtures("rehearsed")
def test_a_captured_step_learns_the_same(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    losses, hits = eager_without_graphs(monkeypatch)
    monkeypatch.setenv(STEP_VARIABLE, step)
    made = trainer(GPT)
    assert made.compile(GPT.plan)
    found, counted = trained(made, GPT.plan)
    assert (made.settings()["step"], made.settings()["cuda_graphs"]) == (step, 2)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    np.testing.assert_array_equal(counted, hits)


def eager_without_graphs(monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    with monkeypatch.context() as changed:
        changed.setenv("TRAINMARK_CUDA_GRAPHS", "0")
        changed.setenv(STEP_VARIABLE, "eager")
        return eager(GPT)


@pytest.mark.usefixtures("rehearsed")
def test_preparing_a_step_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STEP_VARIABLE, "compiled")
    made = trainer(GPT)
    before = made.state()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    made.compile(GPT.plan)
    assert torch.equal(torch.get_rng_state(), state)
    after = made.state()
    for name, value in before.weights.items():
        np.testing.assert_array_equal(after.weights[name], value)
    assert not any(array.any() for slot in after.slots.values() for array in slot.values())


@pytest.mark.parametrize(
    ("case", "falls_back"),
    [
        slow(DROPOUT, False),
        (DROPOUT, True),
        slow(GPT_DROPOUT, False),
        slow(GPT_DROPOUT, True),
    ],
    ids=str,
)
def test_masks_differ_in_every_compiled_step(
    monkeypatch: pytest.MonkeyPatch, case: Case, falls_back: bool
) -> None:
    monkeypatch.setenv(STEP_VARIABLE, "compiled")
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.13.0" if falls_back else "2.12.0"))
    optimizer = dataclasses.replace(case.workload.optimizer, learning_rate=1e-25, lr_schedule=None)
    made = trainer(case.changed(optimizer=optimizer))
    plan = EpochPlan((2, 2), np.array([0, 1, 0, 1]))
    made.compile(plan)
    losses, _ = trained(made, plan)
    assert len(set(losses.tolist())) == len(losses)


def test_only_dropout_needs_the_masks_of_eager_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.13.0"))
    assert random_options(DROPOUT.workload) == {"options": {"fallback_random": True}}
    assert random_options(GPT.workload) == {}
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.12.1"))
    assert random_options(DROPOUT.workload) == {}


def test_without_a_compiler_the_step_is_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    losses, _ = eager(GPT)
    monkeypatch.setenv(STEP_VARIABLE, "compiled")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    made = trainer(GPT)
    made.compile(GPT.plan)
    settings = made.settings()
    assert settings["step"] == "eager"
    assert settings["not_compiled"].startswith(
        "NotInstalled: torch.compile has no compiler for cpu"
    )
    np.testing.assert_array_equal(trained(made, GPT.plan)[0], losses)


@pytest.mark.usefixtures("rehearsed")
def test_a_capture_that_fails_leaves_the_step_uncaptured(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(step: Callable[[], None], _: Any) -> None:
        step()
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    losses, _ = eager_without_graphs(monkeypatch)
    monkeypatch.setattr(engines, "capture", fail)
    made = trainer(GPT)
    made.compile(GPT.plan)
    settings = made.settings()
    assert settings["cuda_graphs"] == 0
    assert (
        settings["not_captured"] == "RuntimeError: operation not permitted when stream is capturing"
    )
    np.testing.assert_allclose(trained(made, GPT.plan)[0], losses, rtol=1e-5)


@pytest.mark.usefixtures("rehearsed")
def test_if_only_eager_steps_can_be_captured_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def capture(step: Callable[[], None], _: Any) -> RehearsedGraph:
        tries.append(step)
        if len(tries) == 2:  # the second batch size of the compiled step
            raise RuntimeError("not permitted")
        return RehearsedGraph(step)

    monkeypatch.setenv(STEP_VARIABLE, "compiled")
    monkeypatch.setattr(engines, "capture", capture)
    made = trainer(GPT)
    made.compile(GPT.plan)
    settings = made.settings()
    assert (settings["step"], settings["cuda_graphs"]) == ("eager", 2)
    assert settings["not_compiled"] == "RuntimeError: not permitted"
    assert "not_captured" not in settings
    assert np.isfinite(trained(made, GPT.plan)[0]).all()


@pytest.mark.usefixtures("rehearsed")
def test_out_of_memory_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(engines, "capture", fail)
    made = trainer(GPT)
    with pytest.raises(torch.OutOfMemoryError):
        made.compile(GPT.plan)
