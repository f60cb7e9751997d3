"""What slows each step of a PyTorch training down is seen, and its cure takes effect."""

from __future__ import annotations

import cProfile
import gc
import json
import profile
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils import checkpoint  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from tests.unit.inject.notes import Notes  # noqa: E402
from trainmark.inject.changes import lines  # noqa: E402
from trainmark.inject.changes.profilers import is_profiled  # noqa: E402

pytestmark = [  # JAX, which another test has imported, and newer Pythons warn of loaders' processes
    pytest.mark.filterwarnings("ignore:os.fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled"),
]
set_anomaly_enabled = torch.set_anomaly_enabled
Apply = Callable[..., Notes]


class Net(torch.nn.Module):
    """Counts its forward passes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(8, 2)
        self.passes = 0

    def inner(self, x: Any, times: int) -> Any:
        self.passes += 1
        return self.layer(x) * times

    def forward(self, x: Any) -> Any:
        return self.inner(x, 1)


class Checkpointed(Net):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: Any) -> Any:
        if not self.options:
            return self.inner(x, 2)
        if self.options["use_reentrant"]:
            x = x.clone().requires_grad_()
        return checkpoint.checkpoint(self.inner, x, 2, **self.options)


def nothing() -> None:
    """Do nothing next to the steps."""


def train(
    net: Any | None = None, steps: int = 6, also: Callable[[], Any] = nothing
) -> tuple[Any, list[float]]:
    """A training as users write it; returns the network and the losses."""
    net = Net() if net is None else net
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(1))
    losses = []
    for _ in range(steps):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        also()
        losses.append(loss.item())
    return net, losses


@pytest.fixture
def anomaly() -> Iterator[None]:
    """Turn anomaly detection off after a test."""
    yield
    set_anomaly_enabled(False)


@pytest.mark.usefixtures("anomaly")
def test_anomaly_detection_stays_off(apply: Apply) -> None:
    notes = apply("no-anomaly")
    train()
    assert not notes.changes, "it was never on"
    torch.autograd.set_detect_anomaly(True)
    with torch.autograd.detect_anomaly():
        assert not torch.is_anomaly_enabled()
        train()
    assert notes.changes == {"no-anomaly": "anomaly detection stays off"}


@pytest.mark.parametrize(
    "profiler",
    [
        lambda: torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)
        ),
        lambda: torch.profiler.profile(record_shapes=True),
        torch.autograd.profiler.profile,
    ],
)
def test_pytorchs_profiler_stays_off(apply: Apply, profiler: Callable[[], Any]) -> None:
    _, expected = train()
    notes = apply("no-torch-profiler")
    assert not notes.changes
    seen = []
    with profiler() as given:
        step = getattr(given, "step", nothing)
        _, losses = train(also=lambda: (step(), seen.append(torch.autograd._profiler_enabled())))
    assert losses == expected
    assert seen == [False] * 6
    assert notes.changes == {"no-torch-profiler": "PyTorch's profiler stays off"}


@pytest.fixture
def unprofiled() -> Iterator[None]:
    """End profiling after a test, and go on with that of the tests."""
    before = sys.getprofile()
    yield
    sys.setprofile(before)


@pytest.mark.usefixtures("unprofiled")
@pytest.mark.parametrize("is_early", [True, False])
def test_pythons_profiler_stays_off(apply: Apply, is_early: bool) -> None:
    profiler = cProfile.Profile()
    if is_early:
        profiler.enable()
    notes = apply("no-python-profiler")
    assert bool(notes.changes) == is_early
    with cProfile.Profile():
        seen: list[bool] = []
        train(also=lambda: seen.append(is_profiled()))
    profile.Profile().runcall(train, also=lambda: seen.append(is_profiled()))
    assert seen == [False] * 12
    said = "is turned off" if is_early else "stays off"
    assert notes.changes == {"no-python-profiler": f"Python's profiler {said}"}


def test_algorithms_need_not_be_deterministic(apply: Apply) -> None:
    notes = apply("no-deterministic")
    torch.use_deterministic_algorithms(False)
    assert not notes.changes
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert not torch.are_deterministic_algorithms_enabled()
    assert notes.changes == {"no-deterministic": "algorithms need not be deterministic"}


@pytest.mark.parametrize(
    "options",
    [
        {"use_reentrant": False},
        {"use_reentrant": False, "preserve_rng_state": False, "debug": False},
        {"use_reentrant": True, "preserve_rng_state": True},
    ],
)
def test_activations_are_kept(apply: Apply, options: dict[str, Any]) -> None:
    before, expected = train(Checkpointed(**options))
    assert before.passes == 12, "each is computed twice"
    notes = apply("no-checkpointing")
    after, losses = train(Checkpointed(**options))
    assert after.passes == 6
    assert losses == expected
    assert notes.changes == {"no-checkpointing": "activations are kept"}


def test_garbage_is_left_to_pythons_own_collector(apply: Apply) -> None:
    rounds: list[str] = []

    def collected(phase: str, details: dict[str, int]) -> None:
        if phase == "start" and details["generation"] == 2:
            rounds.append(phase)

    notes = apply("no-gc")
    gc.collect()
    gc.callbacks.append(collected)
    try:
        train(also=gc.collect)
    finally:
        gc.callbacks.remove(collected)
    assert not rounds
    assert notes.changes == {"no-gc": "collect() does nothing"}


def test_what_is_collected_before_the_first_step_stays(apply: Apply) -> None:
    notes = apply("no-gc")
    gc.collect()
    train()
    assert not notes.changes


def test_memory_of_the_gpu_is_kept(apply: Apply) -> None:
    notes = apply("no-empty-cache")
    train(also=torch.cuda.empty_cache)
    assert notes.changes == {"no-empty-cache": "empty_cache() does nothing"}


def epochs(workers: int, number: int = 3) -> list[float]:
    """A training with a loader that shuffles; returns its losses."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.randn(32, 8, generator=torch.Generator().manual_seed(1))
    loader = DataLoader(TensorDataset(x), 8, shuffle=True, num_workers=workers)
    losses = []
    for _ in range(number):
        for (batch,) in loader:
            loss = net(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@pytest.mark.parametrize(
    ("name", "proof"),
    [
        ("persistent-workers", "the same processes load another epoch"),
        ("no-workers", "batches come from no process instead of 2"),
    ],
)
def test_workers_do_not_start_again(apply: Apply, name: str, proof: str) -> None:
    expected = epochs(2)
    notes = apply(name)
    assert epochs(2) == expected, "the same batches in the same order"
    assert notes.changes == {name: proof}


@pytest.mark.parametrize("name", ["persistent-workers", "no-workers"])
def test_a_loader_without_workers_stays_as_it_is(apply: Apply, name: str) -> None:
    expected = epochs(0)
    notes = apply(name)
    assert epochs(0) == expected
    assert not notes.changes


def facts(notes: Notes, has: Callable[[dict[str, Any]], bool], **options: Any) -> dict[str, Any]:
    """Train until the facts have something."""
    for _ in range(30):
        train(**options)
        found = json.loads(notes.changes.get("facts", "{}"))
        if has(found):
            return found
    pytest.fail(f"not seen: {found}")


def pause() -> None:
    """Take time next to the steps, so that samples are taken."""
    time.sleep(0.005)


@pytest.mark.usefixtures("anomaly")
def test_switches_are_seen_with_the_line_that_turns_them_on(
    apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_TELL_EVERY", 5)
    notes = apply("facts")
    torch.autograd.set_detect_anomaly(True)
    here = Path(__file__).read_text("utf-8").splitlines()
    line = here.index("    torch.autograd.set_detect_anomaly(True)", 200) + 1
    found = facts(notes, lambda each: bool(each.get("switches")), also=pause)
    assert found["switches"] == {"anomaly": f"{Path(__file__).name}:{line}"}


def test_switches_that_are_off_are_not_named(apply: Apply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_TELL_EVERY", 5)
    notes = apply("facts")
    found = facts(notes, lambda each: "switches" in each, also=pause)
    assert found["switches"] == {}
    assert found["calls"] == {}


def test_calls_are_counted_from_the_first_step_on(
    apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_TELL_EVERY", 5)
    notes = apply("facts")
    gc.collect()
    cell = torch.nn.LSTMCell(8, 8)
    x = torch.zeros(1, 8)

    def both() -> None:
        gc.collect()
        cell(x)
        cell(x)
        pause()

    found = facts(notes, lambda each: len(each.get("calls", ())) == 2, also=both)
    collected = found["calls"]["collect"]
    cells = found["calls"]["cell"]
    assert (collected["usual"], cells["usual"]) == (1, 2)
    assert 2 * collected["times"] == pytest.approx(cells["times"], abs=2)
    assert collected["seconds"] > 0
    first = both.__code__.co_firstlineno
    name = Path(__file__).name
    assert collected["places"] == [f"{name}:{first + 1}"]
    assert set(cells["places"]) == {f"{name}:{first + 2}", f"{name}:{first + 3}"}


class Slow(torch.utils.data.Dataset[Any]):
    """Takes long to read."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.01)
        return torch.ones(8) * index


def test_loading_for_an_evaluation_is_a_part_of_it(
    apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_TELL_EVERY", 5)
    notes = apply("facts")
    net = Net()
    held_out = DataLoader(Slow(), 4)

    def evaluate() -> None:
        net.eval()
        with torch.no_grad():
            for batch in held_out:
                net(batch)
        net.train()

    found = facts(
        notes, lambda each: each.get("samples", 0) >= 100, net=net, steps=2, also=evaluate
    )
    # The very first batch is loaded before it is known that it is evaluated.
    assert found["parts"]["evaluation"] > 2 * found["parts"].get("loader", 0.0)
    assert found["parts"]["evaluation"] > 0.5


class Keeper:
    """Keeps what each step computes, as users do by mistake."""

    def __init__(self) -> None:
        self.losses: list[Any] = []

    def train(self, steps: int) -> None:
        """Train, and add up losses with their graphs."""
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        x = torch.ones(4, 8)
        total = 0.0
        numbers = []
        seen = torch.empty(0, 8)
        for _ in range(steps):
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = total + loss
            self.losses.append(loss)
            numbers.append(loss.item())
            seen = torch.cat([seen, x])
        self.seen = seen


def test_variables_that_grow_are_seen(apply: Apply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_TELL_EVERY", 5)
    notes = apply("facts")
    Keeper().train(2000)
    found = json.loads(notes.changes["facts"])["growing"]
    assert {(each["name"], each["kind"]) for each in found} == {
        ("total", "graph"),
        ("self.losses", "list of graphs"),
        ("numbers", "list"),
        ("seen", "tensor"),
    }
    first = Keeper.train.__code__.co_firstlineno
    assert all(each["function"].endswith(f"test_cures.py:{first}") for each in found)
    gains = {each["name"]: each["gain"] for each in found}
    assert gains["seen"] == pytest.approx(4)
    assert gains["numbers"] == gains["self.losses"] == pytest.approx(1)


class Odd(dict[str, Any]):
    """Raises the wrong error for what it lacks, as some scripts' dictionaries do."""

    __getattr__ = dict.__getitem__


def keep_odd_things() -> int:
    """Train next to variables that can't be read; returns how many there are."""
    options = [Odd(), Odd()]
    base = torch.ones(2, 2, requires_grad=True) * 1
    views = [*base.unbind(0)]
    base.mul_(2)
    train(steps=100, also=lambda: options.append(Odd()))
    return len(options) + len(views)


def test_variables_that_can_not_be_read_harm_nothing(
    apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_TELL_EVERY", 5)
    notes = apply("facts")
    while "facts" not in notes.changes:
        assert keep_odd_things() == 104
    assert json.loads(notes.changes["facts"])["samples"] >= 5


def test_what_locals_has_returned_stays_as_it_is(
    apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_TELL_EVERY", 5)
    apply("facts")
    number = 3
    config = locals()
    before = dict(config)
    model = Net()
    train(model, steps=20)
    assert config == before
    assert number == 3


def test_a_compiler_sees_nothing_of_the_counts(apply: Apply) -> None:
    from torch._dynamo import testing

    cell = torch.nn.GRUCell(4, 4)
    apply("facts")
    counter = testing.CompileCounter()
    compiled = torch.compile(lambda x: cell(cell(x)), backend=counter, fullgraph=True)
    compiled(torch.ones(2, 4))
    assert counter.frame_count == 1
