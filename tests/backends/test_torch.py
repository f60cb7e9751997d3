"""What only the PyTorch backend has: 16-bit steps and its switches. All else is in
``test_conformance.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainmark.backends.base import EpochPlan, Options
from trainmark.backends.inductor import require_compiler
from trainmark.data.dataset import Dataset, Split
from trainmark.errors import NotInstalled
from trainmark.workload import catalog
from trainmark.workload.layers import Flatten
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.spec import Workload
from trainmark_conformance import acts
from trainmark_conformance.cases import Case, a_workload, dense
from trainmark_conformance.modern import LANGUAGE_MODEL, RECIPES
from trainmark_conformance.oracle import exact

torch = pytest.importorskip("torch", reason="torch is not installed")

from trainmark.backends.engines import torch as engines  # noqa: E402
from trainmark.backends.torch.backend import TorchBackend  # noqa: E402

# inductor's own use
COMPILING = pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")
BOTH = pytest.mark.parametrize("style", ["idiomatic", "fast"])


def numbered(shape: tuple[int, int, int], examples: int = 230) -> Dataset:
    """Each image is filled with its own index, so that a batch tells which examples it holds."""
    images = np.zeros((examples, *shape), dtype=np.uint8)
    images += np.arange(examples, dtype=np.uint8)[:, None, None, None]
    labels = (np.arange(examples) % 10).astype(np.uint8)
    return Dataset("numbered", Split(images, labels), Split(images.copy(), labels.copy()), "", True)


def trainer(workload: Workload, data: Dataset, style: str, precision: str = "fp32") -> Any:
    options = Options(style, "cpu", precision, seed=1)  # type: ignore[arg-type]
    made = TorchBackend().trainer(workload, lay_out(workload), data, options)
    made.load(initial_weights(lay_out(workload), seed=1))
    return made


@BOTH
def test_a_16_bit_step_learns(style: str) -> None:
    workload = catalog.find("mnist-mlp128")
    made = trainer(workload, numbered((28, 28, 1)), style, "bf16")
    made.begin_epoch(EpochPlan((100, 100), np.arange(200)))
    losses = made.read(made.train(2, lambda: None)).losses
    assert np.isfinite(losses).all()
    assert made._parameters[0].dtype == torch.float32


@BOTH
@pytest.mark.parametrize(
    "name", ["mnist-mlp32", "mnist-mlp32:two-stage", "mnist-mlp128", "mnist-mlp512", "mnist-cnn"]
)
def test_the_loss_of_a_16_bit_step_is_not_rounded(name: str, style: str) -> None:
    workload = catalog.find(name)
    made = trainer(workload, numbered((28, 28, 1)), style, "bf16")
    made.load({name: np.zeros_like(value) for name, value in made.weights().items()})
    made.begin_epoch(EpochPlan((100,), np.arange(100)))
    losses = [made.evaluate("test").loss, *made.read(made.train(1, lambda: None)).losses]
    np.testing.assert_allclose(losses, np.log(10), rtol=1e-6)  # in bf16, it would be 2.296875


@BOTH
@pytest.mark.parametrize("case", RECIPES[1:3], ids=str)
def test_mixed_precision_is_close(case: Case, style: str) -> None:
    made = trainer(case.workload, case.data, style, "bf16")
    made.load(case.weights)
    assert {parameter.dtype for parameter in made._parameters} == {torch.float32}
    found = acts.train(made, case.plan).losses
    expected = exact(case, acts.losses_alone)["losses"]
    # rounding grows from step to step
    np.testing.assert_allclose(found[:2], expected[:2], rtol=0.02)
    assert not np.allclose(found, expected, rtol=1e-5)


def test_the_head_shares_the_table() -> None:
    made = trainer(LANGUAGE_MODEL.workload, LANGUAGE_MODEL.data, "fast")
    modules = dict(made._network.named_modules())
    assert modules["tied-head1"].weight is modules["token-embedding1"].weight
    assert len(made._parameters) == len(made._model.trained)


def test_ieee_single_precision_is_asked_for() -> None:
    torch.set_float32_matmul_precision("high")
    settings = trainer(catalog.find("mnist-mlp128"), numbered((28, 28, 1)), "fast").settings()
    assert settings["float32_matmul_precision"] == "highest"
    assert settings["cudnn_allow_tf32"] is False


@BOTH
def test_loading_again_starts_a_new_optimizer(style: str) -> None:
    """The continued protocol needs this: the same weights twice must give the same losses twice."""
    workload = catalog.find("mnist-mlp32").deterministic()
    made = trainer(workload, numbered((28, 28, 1)), style)
    weights = made.weights()
    plan = EpochPlan((230,) * 3, np.tile(np.arange(230), 3), True)
    made.compile(plan)
    runs = []
    for _ in range(2):
        made.load(weights)
        made.begin_epoch(plan)
        runs.append(made.read(made.train(3, lambda: None)).losses)
    np.testing.assert_array_equal(runs[0], runs[1])


def compiled_graphs() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


@pytest.mark.slow
@COMPILING
def test_every_network_of_a_process_is_compiled() -> None:
    """PyTorch stops compiling after 8 networks of one process, and continues without a message."""
    for units in range(1, 11):
        before = compiled_graphs()
        workload = a_workload(Flatten(), dense(units), dense(10))
        made = trainer(workload, numbered((4, 4, 1), 20), "compiled")
        made.compile(EpochPlan((8, 8), np.arange(16)))
        assert compiled_graphs() == before + 1


@COMPILING
def test_compiling_ahead_changes_neither_weights_nor_random_numbers() -> None:
    workload = catalog.find("mnist-mlp512")
    plan = EpochPlan((8, 8), np.arange(16))
    runs = []
    for ahead in (True, False):
        made = trainer(workload, numbered((28, 28, 1), 20), "compiled")
        if ahead:
            assert made.compile(plan)
        made.begin_epoch(plan)
        runs.append(made.read(made.train(2, lambda: None)).losses)
    np.testing.assert_array_equal(runs[0], runs[1])


def test_no_autograd_node_of_another_stream_lives_while_capturing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node belongs to the stream on which it was made, and a capture can't wait for the default
    one."""
    found = []

    def node() -> Any:
        return parameter.view_as(parameter).grad_fn.next_functions[0][0]

    def capture(_step: Any, _device: Any) -> None:
        node().metadata["earlier"] = (
            True  # it is lost with the node, unless something keeps it alive
        )
        found.append("earlier" in node().metadata)

    monkeypatch.setattr(engines, "captures", lambda _: True)
    monkeypatch.setattr(engines, "capture", capture)
    made = trainer(catalog.find("mnist-mlp128"), numbered((28, 28, 1)), "fast")
    parameter = made._parameters[0]
    made.compile(EpochPlan((100,), np.arange(100)))
    assert found == [False]


def test_compiled_without_a_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(NotInstalled, match=r"torch\.compile has no compiler for cpu") as caught:
        trainer(catalog.find("mnist-mlp128"), numbered((28, 28, 1)), "compiled")
    assert "C++ compiler" in caught.value.expected
    assert "--style idiomatic or fast" in caught.value.fix
    assert "docs/containers.md" in caught.value.fix


def test_triton_without_a_c_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: "triton is there")
    with pytest.raises(
        NotInstalled, match=r"has no compiler for cuda:0: expected .*a C compiler on PATH"
    ):
        require_compiler("cuda:0")


def test_fast_keeps_the_channels_last_where_a_network_convolves() -> None:
    for name, expected in (("mnist-cnn", "channels_last"), ("mnist-mlp128", "contiguous")):
        assert (
            trainer(catalog.find(name), numbered((28, 28, 1)), "fast").settings()["memory_format"]
            == expected
        )


@pytest.mark.parametrize(
    ("workload", "style", "flushes"),
    [
        ("mnist-mlp128", "fast", True),
        ("mnist-mlp128", "idiomatic", False),
        ("mnist-mlp32:two-stage", "fast", False),  # such a loss is about numbers that small
    ],
)
def test_fast_flushes_denormals_by_the_public_call(
    workload: str, style: str, flushes: bool
) -> None:
    """The switch is put back, since it holds for the whole thread, where NumPy and other trainers
    compute, too."""
    tiny = torch.tensor([1e-39])
    found = []
    made = trainer(catalog.find(workload), numbered((28, 28, 1)), style)
    made.begin_epoch(EpochPlan((230,), np.arange(230), whole=True))
    made.train(1, lambda: found.append(bool((tiny * 0.5 == 0).item())))
    assert found == [flushes]
    assert (tiny * 0.5 != 0).item()


FLUSHED = """
import numpy as np, torch
from tests.backends.test_torch import numbered, trainer
from trainmark.backends.base import EpochPlan
from trainmark.workload import catalog
made = trainer(catalog.find("mnist-mlp128"), numbered((28, 28, 1)), "fast")
small = torch.full((1 << 20,), 1e-30)  # so large that all threads of PyTorch take a part
found = []
made.begin_epoch(EpochPlan((230,), np.arange(230), whole=True))
made.train(1, lambda: found.append(int((small * 1e-10 == 0).sum())))
assert found == [1 << 20], found
"""


def test_fast_flushes_denormals_in_every_thread() -> None:
    root = Path(__file__).parents[2]
    path = os.pathsep.join(
        [str(root / "src"), str(root / "plugins" / "trainmark-conformance" / "src")]
    )
    subprocess.run(
        [sys.executable, "-c", FLUSHED],
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
    )
