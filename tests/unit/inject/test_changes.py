"""Each change to a PyTorch training takes effect, says so, and learns the same where it should."""

from __future__ import annotations

import gc
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.optim import Optimizer  # noqa: E402

from tests.unit.inject.notes import Notes  # noqa: E402
from trainmark.analysis.experiments import (  # noqa: E402
    CURES_OF_JAX,
    CURES_OF_KERAS,
    EXPERIMENTS,
    OF_JAX,
    OF_KERAS,
    ONLY_JAX,
    ONLY_KERAS,
)
from trainmark.inject import accelerator  # noqa: E402
from trainmark.inject import changes as all_changes  # noqa: E402
from trainmark.inject.changes import lines  # noqa: E402
from trainmark.inject.changes import torch as changes  # noqa: E402
from trainmark.inject.changes.torch import loading, profile  # noqa: E402

pytestmark = [  # JAX, which another test has imported, and newer Pythons warn of loaders' processes
    pytest.mark.filterwarnings("ignore:os.fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
optimizers = sys.modules[Optimizer.__module__]
EXAMPLES = 96
BATCH = 8


class Data(torch.utils.data.Dataset[Any]):
    def __init__(self, dtype: Any = torch.float32) -> None:
        generator = torch.Generator().manual_seed(1)
        self.x = torch.randn(EXAMPLES, 3, 8, 8, generator=generator, dtype=dtype)
        self.y = self.x.mean((1, 2, 3)).gt(0).long()
        self.reads = 0

    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, index: int) -> Any:
        self.reads += 1
        return self.x[index], self.y[index]


class SlowToRead(Data):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.001)
        return super().__getitem__(index)


class Descent(torch.optim.Optimizer):
    """Written by hand, with a momentum."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for weight in self.param_groups[0]["params"]:
            momentum = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
            momentum.mul_(0.9).add_(weight.grad)
            weight -= 0.1 * momentum


def network(dtype: Any = torch.float32) -> Any:
    torch.manual_seed(0)
    layers = (
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 2),
    )
    return torch.nn.Sequential(*layers).to(dtype)


def train(
    *,
    optimizer: Callable[..., Any] = lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9),
    dtype: Any = torch.float32,
    data: Data | None = None,
    epochs: int = 2,
    evaluate: Callable[[Any, Any], None] = lambda *_: None,
) -> list[float]:
    """A training as users write it; returns its losses."""
    model = network(dtype)
    data = data or Data(dtype)
    steps = optimizer(model.parameters())
    losses = []
    loader = torch.utils.data.DataLoader(
        data, BATCH, shuffle=True, generator=torch.Generator().manual_seed(2)
    )
    for _ in range(epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            steps.zero_grad()
            loss.backward()
            steps.step()
            losses.append(float(loss.detach().numpy()))
        evaluate(model, loader)
    return losses


@pytest.mark.parametrize(
    ("name", "proof", "tolerance"),
    [
        ("foreach", "aten._foreach_", 1e-6),
        ("fused", "aten._fused_sgd_", 1e-5),
        ("threads=1", "1 threads", 1e-5),
        ("workers=2", "2 worker processes", 0.0),
        ("prefetch", "while a step computes", 0.0),
        ("channels-last", "1 convolutions", 1e-5),
        ("bf16", "layers compute in bf16", 0.1),
        ("fp16", "layers compute in fp16", 0.1),
    ],
)
def test_learns_the_same(
    apply: Callable[..., Notes], name: str, proof: str, tolerance: float
) -> None:
    expected = train()
    notes = apply(name)
    losses = train()
    assert proof in notes.changes[name], notes.failures
    assert losses == pytest.approx(expected, rel=tolerance, abs=tolerance)


def test_double_precision_becomes_single(apply: Callable[..., Notes]) -> None:
    expected = train(dtype=torch.float64)
    notes = apply("fp32")
    torch.set_default_dtype(torch.float64)
    assert torch.get_default_dtype() is torch.float32
    assert train(dtype=torch.float64) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert notes.changes == {"fp32": "the model computes in fp32"}


def test_an_optimizer_written_by_hand_becomes_the_fused_one(
    apply: Callable[..., Notes],
) -> None:
    expected = train(optimizer=Descent)
    notes = apply("torch-optimizer")
    losses = train(optimizer=Descent)
    assert notes.changes == {"torch-optimizer": "SGD replaces Descent"}
    assert losses[:2] == pytest.approx(expected[:2])
    assert losses[-1] < losses[0]


def test_a_step_of_a_replaced_optimizer_counts_once(
    apply: Callable[..., Notes],
) -> None:
    stepped: list[Any] = []
    apply("torch-optimizer")
    handle = optimizers.register_optimizer_step_post_hook(
        lambda each, *_: stepped.append(type(each))
    )
    losses = train(optimizer=Descent)
    handle.remove()
    assert stepped == [Descent] * len(losses)


def test_a_closure_reaches_the_optimizer_that_replaces_another(apply: Callable[..., Notes]) -> None:
    model = network(torch.float32)
    (x, _) = Data(torch.float32)[0]
    calls = []

    def closure() -> Any:
        calls.append(x)
        loss = model(x[None]).sum()
        loss.backward()
        return loss

    notes = apply("torch-optimizer")
    steps = Descent(model.parameters())
    closure()
    steps.step(closure=closure)  # its own step, which ignores it
    steps.step(closure)
    steps.step(closure=closure)
    assert notes.changes == {"torch-optimizer": "SGD replaces Descent"}
    assert len(calls) == 3


def test_an_optimizer_without_the_implementation_is_named(apply: Callable[..., Notes]) -> None:
    notes = apply("fused")
    train(optimizer=Descent)
    assert notes.failures == {"fused": "Descent has no fused implementation"}
    assert not notes.changes


@pytest.mark.parametrize("flag", ["fused", "foreach"])
@pytest.mark.parametrize("first", [torch.optim.Adam, Descent])
def test_both_optimizers_of_a_gan_are_changed(
    apply: Callable[..., Notes], flag: str, first: Any
) -> None:
    notes = apply(flag)
    networks = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)]
    both = [
        kind(each.parameters())
        for kind, each in zip((first, torch.optim.AdamW), networks, strict=True)
    ]
    for _ in range(2):
        for optimizer in both:
            optimizer.zero_grad()
            networks[1](networks[0](torch.ones(2, 4))).sum().backward()
            optimizer.step()
    assert [each.param_groups[0].get(flag) for each in both] == [
        None if first is Descent else True,
        True,
    ]
    assert f"calls aten._{flag}_" in notes.changes[flag]
    assert not notes.failures


@pytest.mark.parametrize("names", ["same-batch", "same-batch,workers=1"])
def test_every_loader_yields_its_first_batch_again(apply: Callable[..., Notes], names: str) -> None:
    data = Data()
    notes = apply(names)
    losses = train(data=data, epochs=3)
    assert len(losses) == 3 * EXAMPLES / BATCH, "as many as before"
    assert losses[-1] < losses[0] / 10, "of eight examples"
    assert data.reads == (0 if "workers" in names else BATCH)
    assert notes.changes["same-batch"] == "Data is no longer read"


def test_a_frozen_network_at_the_end_of_a_step_is_no_evaluation(
    apply: Callable[..., Notes],
) -> None:
    data = Data()
    notes = apply("same-batch")
    model = network()
    frozen = network().eval()
    for x, _ in torch.utils.data.DataLoader(data, batch_size=BATCH):
        (model(x) - frozen(x)).square().sum().backward()
    assert notes.changes == {"same-batch": "Data is no longer read"}
    assert data.reads == BATCH


class Stream(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        data = Data()
        return iter([data[number] for number in range(EXAMPLES)])


@pytest.mark.parametrize("workers", [0, 1])
def test_an_evaluation_of_a_stream_ends(apply: Callable[..., Notes], workers: int) -> None:
    model = network()
    loader = torch.utils.data.DataLoader(Stream(), batch_size=BATCH, num_workers=workers)
    apply("same-batch")
    model.eval()
    assert sum(len(model(x)) for x, _ in itertools.islice(loader, 100)) == EXAMPLES


def get_batch(split: str, data: Data = Data()) -> Any:  # noqa: B008
    chosen = torch.randint(EXAMPLES, (BATCH,))
    data.reads += 1
    return data.x[chosen], data.y[chosen], split


def test_a_function_that_returns_batches_is_found(
    apply: Callable[..., Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "get_batch", get_batch)
    model = network()
    notes = apply("same-batch")
    seen = list[int]()
    for _ in range(8):
        x, _, _ = get_batch("train")
        model(x).sum().backward()
        seen.append(id(x))
    assert len(set(seen[-5:])) == 1
    assert notes.changes == {"same-batch": "get_batch() repeats its first batch"}


def test_batches_are_larger(apply: Callable[..., Notes]) -> None:
    notes = apply("batch=4")
    assert len(train()) == 2 * EXAMPLES / BATCH / 4
    assert notes.changes == {"batch=4": "batches of 32 instead of 8"}


def test_a_data_set_may_be_too_small_for_larger_batches(apply: Callable[..., Notes]) -> None:
    notes = apply("batch=16")
    assert len(train()) == 2 * EXAMPLES / BATCH
    assert notes.failures == {
        "batch=16": "the dataset has too few examples for batches 16 times as large"
    }


def test_batches_that_the_network_does_not_get_are_not_larger(apply: Callable[..., Notes]) -> None:
    notes = apply("batch=4")
    model = network()
    for _ in torch.utils.data.DataLoader(Data(), 8):
        model(torch.randn(8, 3, 8, 8))
    for _ in range(4):
        model(torch.randn(8, 3, 8, 8))
    assert notes.failures == {"batch=4": "the model does not receive the loader's batches"}


def accumulate(model: Any, times: int = 4) -> list[float]:
    """Steps after every fourth batch, as users write it; returns the losses of the steps."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = [0.0]
    for number, (x, y) in enumerate(torch.utils.data.DataLoader(Data(), BATCH)):
        loss = torch.nn.functional.cross_entropy(model(x), y) / times
        loss.backward()
        losses[-1] += loss.item()
        if (number + 1) % times == 0:
            optimizer.step()
            optimizer.zero_grad()
            losses.append(0.0)
    return losses


def test_accumulated_gradients_become_those_of_a_larger_batch(apply: Callable[..., Notes]) -> None:
    seen = apply("facts")
    expected = accumulate(network())
    assert json.loads(seen.changes["facts"])["accumulates"] == 4
    notes = apply("no-accumulation=4")
    model = network()
    computed = list[int]()
    model[0].register_forward_hook(lambda _layer, args, _out: computed.append(len(args[0])))
    assert accumulate(model) == pytest.approx(expected, rel=1e-5)
    assert computed == [4 * BATCH] * (EXAMPLES // BATCH // 4)
    assert notes.changes["no-accumulation=4"] == "one batch instead of 4"


def test_too_few_examples_for_one_batch_are_no_gain(apply: Callable[..., Notes]) -> None:
    notes = apply("no-accumulation=16")
    accumulate(network())
    assert notes.changes == {}
    assert "too few examples" in notes.failures["no-accumulation=16"]


def test_attention_is_fused(apply: Callable[..., Notes]) -> None:
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 3, 8)
    expected, weights = layer(x, x, x)
    notes = apply("look,attention")
    found, without = layer(x, x, x)
    assert weights is not None and without is None
    assert torch.allclose(found, expected, atol=1e-6)
    assert notes.changes["attention"] == "scaled_dot_product_attention is called"


def test_attention_of_transformers_is_fused(apply: Callable[..., Notes]) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "n_positions": 8, "vocab_size": 16}
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**sizes, attn_implementation="eager")
    ).eval()
    tokens = torch.arange(8)[None]
    expected = model(tokens).logits
    notes = apply("attention")
    assert torch.allclose(model(tokens).logits, expected, atol=1e-5)
    assert notes.changes["attention"] == "scaled_dot_product_attention is called"


def test_lines_that_report_a_result_get_an_old_one(
    apply: Callable[..., Notes], capsys: pytest.CaptureFixture[str]
) -> None:
    notes = apply("no-sync")
    for number in range(3):
        print(torch.tensor(float(number)).item())
        print(float(torch.tensor(number + 7)))
    assert capsys.readouterr().out.split() == ["0.0", "7.0"] * 3, "every line has its own"
    assert "test_changes.py:" in notes.changes["no-sync"]


def test_lines_whose_result_is_computed_with_get_the_new_one(apply: Callable[..., Notes]) -> None:
    notes = apply("no-sync")
    seen: list[int] = []
    for number in range(3):
        at = torch.tensor(number).item()
        seen.append("abc".index("abc"[at]))
    assert seen == [0, 1, 2]
    assert not notes.changes
    assert "the script computes with what" in notes.failures["no-sync"]


def evaluate(model: Any, loader: Any) -> None:
    model.eval()
    Seen.batches = [model(x) for x, _ in loader]
    model.train()


class Seen:
    batches: list[Any]


def test_evaluation_is_left_out(apply: Callable[..., Notes]) -> None:
    expected = train(epochs=1)
    notes = apply("no-evaluation")
    assert train(epochs=1, evaluate=evaluate) == expected
    assert len(Seen.batches) == 1
    assert notes.changes


def test_evaluation_records_no_gradients(apply: Callable[..., Notes]) -> None:
    notes = apply("no-grad")
    train(epochs=1, evaluate=evaluate)
    assert len(Seen.batches) == EXAMPLES / BATCH
    assert not any(each.requires_grad for each in Seen.batches)
    assert notes.changes == {"no-grad": "Sequential evaluates without gradients"}


def test_nothing_is_saved(apply: Callable[..., Notes], tmp_path: Path) -> None:
    notes = apply("no-saves")
    torch.save(network().state_dict(), tmp_path / "model.pt")
    np.savez(tmp_path / "arrays.npz", real=np.ones(2), imag=np.ones(2))
    assert not list(tmp_path.iterdir())
    assert notes.changes == {"no-saves": "save does nothing"}


def _nothing() -> None:
    pass


def _set_again() -> None:
    torch.set_float32_matmul_precision("highest")


def _forbid() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False


def _in_the_new_way() -> None:
    torch.backends.cuda.matmul.fp32_precision = "ieee"


@pytest.mark.parametrize(
    ("script", "proven"),
    [(_nothing, True), (_set_again, True), (_forbid, False), (_in_the_new_way, False)],
)
def test_tf32_counts_if_a_step_uses_it(
    apply: Callable[..., Notes],
    monkeypatch: pytest.MonkeyPatch,
    script: Callable[[], None],
    proven: bool,
) -> None:
    monkeypatch.setattr(accelerator, "has_tf32", lambda _: True)
    set_precision = torch.set_float32_matmul_precision
    notes = apply("tf32")
    try:
        assert not notes.changes
        script()
        weight = torch.ones(1, requires_grad=True)
        weight.sum().backward()
        torch.optim.SGD([weight], 0.1).step()
        assert notes.changes == ({"tf32": "matrix products use TF32"} if proven else {})
    finally:
        set_precision("highest")


COMPILED = """
import functools, json, torch
from pathlib import Path
from tests.unit.inject import test_changes
from tests.unit.inject.notes import Notes
from tests.unit.inject.test_changes import train
from trainmark.inject import changes
from trainmark.inject.changes import torch as changes_of_torch
torch.compile = functools.partial(torch.compile, backend="eager")
notes = Notes(Path(test_changes.__file__))
changes.apply(notes, changes_of_torch)
losses = train(epochs=1)
from torch._dynamo import utils
graphs = utils.counters["stats"]["unique_graphs"]
known = utils.unpatched_nn_module_call is torch.nn.Module.__call__
print(json.dumps([losses, notes.changes, graphs, known]))
"""


def test_a_model_is_compiled_as_one_graph() -> None:
    words = [sys.executable, "-c", COMPILED]
    environment = {**os.environ, all_changes.VARIABLE: "compile"}
    done = subprocess.run(
        words,
        env=environment,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    losses, proofs, graphs, known = json.loads(done.stdout)
    assert losses == pytest.approx(train(epochs=1))
    assert proofs == {"compile": "Sequential is compiled"}
    assert graphs == 1
    assert known, "or the compiler would look into what surrounds each module"


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@pytest.mark.parametrize("name", ["pin", "tf32"])
def test_what_needs_a_gpu_says_so(apply: Callable[..., Notes], name: str) -> None:
    assert "no GPU" in apply(name).failures[name]


def test_an_error_is_reported_and_the_training_goes_on(apply: Callable[..., Notes]) -> None:
    notes = apply("threads=many")
    assert "ValueError" in notes.failures["threads=many"]
    assert train(epochs=1)


def test_the_users_process_knows_every_planned_experiment() -> None:
    keras = Path(all_changes.__file__).with_name("keras.py").read_text()
    of_keras = set(re.findall(r"^(?:def )?([a-z]\w+)(?: = |\(change)", keras, re.MULTILINE))
    of_torch = {name for name in EXPERIMENTS if hasattr(changes, name.replace("-", "_"))}
    others = {*ONLY_KERAS, *CURES_OF_KERAS, *ONLY_JAX, *CURES_OF_JAX}
    assert of_torch == EXPERIMENTS.keys() - {*others, "line"}, "lines are sampled"
    jax = Path(all_changes.__file__).with_name("jax.py").read_text()
    of_jax = set(re.findall(r"^def ([a-z]\w+)\(change", jax, re.MULTILINE)) - {"facts"}
    assert {name.replace("-", "_") for name in (*OF_JAX, *CURES_OF_JAX)} == of_jax
    assert {name for name in EXPERIMENTS if name.replace("-", "_") in of_keras} == {
        *OF_KERAS,
        *CURES_OF_KERAS,
    }


def test_what_the_plan_depends_on_is_reported(
    apply: Callable[..., Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a slow machine would take enough samples after it evaluates
    monkeypatch.setattr(lines, "_TELL_EVERY", 10**9)
    monkeypatch.setattr(lines, "_TELL_EARLY", ())
    notes = apply("facts")
    train(evaluate=evaluate)
    facts = json.loads(notes.changes["facts"])
    known = {"workers": 0, "iterable": False, "conv": True, "graded": False, "attention": False}
    of_optimizer = {"optimizer": "SGD", "handwritten": False, "fused": None, "foreach": None}
    assert facts.items() >= {**known, **of_optimizer}.items(), "before it evaluates"
    assert len(facts["stack"]) == 2, "the line of the step, and of the test"


def test_the_parts_of_a_step_are_sampled(
    apply: Callable[..., Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_TELL_EVERY", 10)
    monkeypatch.setattr(lines, "_IN_A_PART", 2)
    notes = apply("facts")
    data = SlowToRead()
    evaluations = list[Any]()

    def slow_to_differentiate(weights: Any) -> Any:
        weights = list(weights)
        weights[-1].register_hook(lambda _: time.sleep(0.001))  # else few samples fall into it
        return torch.optim.SGD(weights, 0.1)

    def both(*given: Any) -> None:
        evaluations.append(given)
        end = time.monotonic() + 0.1
        while time.monotonic() < end:  # this is the user's own code
            pass

    expected = {"loader", "backward", "your own code"}
    for _ in range(30):  # a short part may be missed
        train(optimizer=slow_to_differentiate, data=data, evaluate=both)
        facts = json.loads(notes.changes["facts"])
        parts = facts.get("parts", {})
        if parts.keys() >= expected:
            break
    assert parts.keys() >= expected
    assert sum(parts.values()) == pytest.approx(1)
    of_own = facts["parts"]["your own code"]
    assert sum(facts["own"].values()) == pytest.approx(of_own), "they are shares of all samples"
    for third in ("early", "late"):
        assert sum(facts[third].values()) == pytest.approx(1)
    ours = both.__code__.co_firstlineno
    assert {int(each.rpartition(":")[2]) for each in facts["own"]} & {ours + 3, ours + 4}, facts[
        "own"
    ]
    assert facts["samples"] >= 10


def test_a_forward_pass_that_is_called_as_a_function_is_one() -> None:
    notes = Notes(Path(__file__))

    class Layer(torch.nn.Module):
        def forward(self) -> str:
            return lines._now(notes, threading.get_ident()).part

        def other(self) -> str:
            return lines._now(notes, threading.get_ident()).part

    layer = Layer()
    assert layer.forward() == "forward"
    assert layer.other() == "your own code"


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_while_frames_are_read(
    monkeypatch: pytest.MonkeyPatch, collects: bool
) -> None:
    """Otherwise Python 3.11 may crash: while finalizers run, the thread runs on, and its frames are
    freed."""
    notes = Notes(Path(__file__))
    states = list[bool]()
    monkeypatch.setattr(notes, "users_place", lambda frame: states.append(gc.isenabled()))
    if not collects:
        gc.disable()
    try:
        found = lines._now(notes, threading.get_ident())
        assert (found.place, found.part) == (None, "your own code")
        assert states == [False]
        assert gc.isenabled() is collects
    finally:
        gc.enable()


def test_a_new_data_set_is_not_taken_for_an_old_one(apply: Callable[..., Notes]) -> None:
    """Python gives a new object the identity of one that is gone."""
    known = loading.Loading(apply("unchanged"))
    evaluated = list[bool]()

    def fetch(_: Any) -> None:
        evaluated.append(known.is_evaluated())

    for _ in range(20):
        known.fetch(fetch, SimpleNamespace(_dataset=object()))
        known.use(is_evaluated=True)
    assert evaluated == [False] * 20


def test_the_time_that_a_device_computes() -> None:
    assert profile.covered([(0, 2), (1, 3), (5, 6), (9, 10)]) == 0.5
    shares = list[float]()
    busy = profile.Busy(torch.autograd.DeviceType.CPU, shares.append)
    for _ in range(profile.BEGINS_AFTER + profile.STEPS):
        torch.ones(64, 64) @ torch.ones(64, 64)
        busy.stepped()
    (share,) = shares
    assert 0 < share <= 1


class TwoLayers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.large = torch.nn.Linear(512, 2048)
        self.small = torch.nn.Linear(2048, 2)

    def forward(self, x: Any) -> Any:
        hidden = self.large(x)
        return self.small(hidden.relu())


def test_the_time_of_a_device_belongs_to_modules_and_lines() -> None:
    """Here, the device is the CPU; backward operators belong to the modules of their forward."""
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo.utils"].counters.clear()  # another test has compiled
    shares: list[list[tuple[str, str, float]]] = []
    by_module = profile.ByModule(
        Notes(Path(__file__)),
        torch.autograd.DeviceType.CPU,
        shares.append,
        lambda event: float(event.self_cpu_time_total),
    )
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(by_module.last_step):
        optimizer.zero_grad()
        model(torch.randn(256, 512)).square().mean().backward()
        optimizer.step()
        by_module.stepped()
    (found,) = shares
    name, place, share = found[0]
    lines = Path(__file__).read_text("utf-8").splitlines()
    (number,) = (
        number for number, line in enumerate(lines, 1) if line.strip() == "hidden = self.large(x)"
    )
    assert (name, place) == ("Linear", f"{Path(__file__).name}:{number}")
    assert 0.1 < share < 1
    assert {each[0] for each in found} >= {"Linear", "TwoLayers", "SGD.step"}
    assert sum(each[2] for each in found) <= 1
    assert not torch.nn.modules.module._global_forward_hooks
