"""Changes that are tried within one training, and what is put back after each of them."""

from __future__ import annotations

import gc
import itertools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.observed import observed  # noqa: E402
from tests.unit.inject.notes import Notes  # noqa: E402
from trainmark.analysis.experiments import SWITCHABLE  # noqa: E402
from trainmark.inject.changes import trial_blocks  # noqa: E402
from trainmark.inject.changes.torch import blocks  # noqa: E402
from trainmark.inject.changes.torch.state import State  # noqa: E402

MOST_STEPS = 20_000
LONG = 0.02
"""Seconds that a slow part takes, which is many times as long as a step."""


class Ended(Exception):
    """The observer has ended the training."""


class Trying(Notes):
    pauses = 0

    def end(self) -> None:
        raise Ended


def train(
    beside: Callable[[Any], object] = lambda _: None,
    build: Callable[[Any], Any] = lambda weights: torch.optim.Adam(weights, foreach=False),
) -> Any:
    """A training that goes on until it is ended; returns its optimiser."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 2),
    )
    data = torch.utils.data.TensorDataset(torch.randn(64, 3, 6, 6), torch.randint(2, (64,)))
    loader = torch.utils.data.DataLoader(data, 8, shuffle=True)
    steps = build(model.parameters())
    made = 0
    try:
        while made < MOST_STEPS:
            for x, y in loader:
                loss = torch.nn.functional.cross_entropy(model(x), y)
                steps.zero_grad()
                loss.backward()
                steps.step()
                beside(loss)
                made += 1
    except Ended:
        return steps
    raise AssertionError("it was never ended")


def ratios(notes: Notes, names: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = json.loads(notes.changes[f"trials={names}"])
    return found


def test_all_that_is_planned_can_be_switched() -> None:
    assert tuple(blocks.SWITCHABLE) == SWITCHABLE


@pytest.fixture
def tried(apply: Callable[..., Notes], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return the speed-ups of changes, and the optimiser."""

    def run(names: str, **how: Any) -> tuple[dict[str, list[float]], Any]:
        monkeypatch.setattr("tests.unit.inject.conftest.Notes", Trying)
        monkeypatch.setattr(trial_blocks, "BLOCK_SECONDS", 0.02)
        notes = apply(f"trials={names}")
        assert not notes.failures
        optimizer = train(**how)
        return ratios(notes, names), optimizer

    return run


def test_what_is_slow_is_found_and_the_rest_is_not(tried: Callable[..., Any]) -> None:
    def slow(_: Any) -> None:
        gc.collect()

    def sleeps(*_: Any, **__: Any) -> int:
        time.sleep(LONG)
        return 0

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gc, "collect", sleeps)
        found, _ = tried("no-gc;foreach", beside=slow)
    assert len(found["no-gc"]) == len(found["foreach"]) == 3
    assert statistics.median(found["no-gc"]) > 2 > statistics.median(found["foreach"])


def test_reads_are_frozen_in_their_blocks_alone(
    tried: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def log(loss: Any) -> None:
        print(loss.item())

    found, _ = tried("no-sync", beside=log)
    assert len(found["no-sync"]) == 3
    losses = capsys.readouterr().out.split()
    repeated = [one == other for one, other in itertools.pairwise(losses)]
    begins = [not before and now for before, now in itertools.pairwise(repeated)]
    assert sum(begins) == 3


@pytest.mark.parametrize("name", ["bf16", "fused", "foreach", "threads=1", "same-batch"])
def test_each_is_tried(tried: Callable[..., Any], name: str) -> None:
    found, _ = tried(name)
    assert [len(each) for each in found.values()] == [3]


def test_both_implementations_of_an_optimiser_are_tried(tried: Callable[..., Any]) -> None:
    found, optimizer = tried("fused;foreach")
    assert set(found) == {"fused", "foreach"}
    group = optimizer.param_groups[0]
    assert (group["fused"], group["foreach"]) == (None, False)


def test_what_does_not_apply_is_left_out(tried: Callable[..., Any]) -> None:
    """There is no GPU for TF32, nothing is checkpointed, and no anomaly is looked for."""
    found, _ = tried("tf32;no-checkpointing;no-anomaly;foreach")
    assert set(found) == {"foreach"}


def test_anomaly_detection_is_on_again_afterwards(tried: Callable[..., Any]) -> None:
    with torch.autograd.set_detect_anomaly(False):

        def turn_on(_: Any) -> None:
            torch.autograd.set_detect_anomaly(True)

        found, _ = tried("no-anomaly", beside=turn_on)
        assert len(found["no-anomaly"]) == 3
        assert torch.is_anomaly_enabled()


def test_the_next_training_of_a_process_begins_again(
    apply: Callable[..., Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first optimiser makes too few steps for any block."""
    monkeypatch.setattr("tests.unit.inject.conftest.Notes", Trying)
    monkeypatch.setattr(trial_blocks, "BLOCK_SECONDS", 0.001)
    notes = apply("trials=foreach")
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    first = torch.optim.SGD([weight], 0.1)
    second = torch.optim.SGD([weight], 0.1)
    for _ in range(10):
        first.step()
    with pytest.raises(Ended):
        for _ in range(MOST_STEPS):
            second.step()
    assert len(ratios(notes, "foreach")["foreach"]) == 3


def test_what_the_script_sets_before_its_first_step_stays(tried: Callable[..., Any]) -> None:
    threads = []
    torch.set_num_threads(1)

    def note(_: Any) -> None:
        threads.append(torch.get_num_threads())

    tried("threads=2;foreach", beside=note)
    assert threads[0] == threads[-1] == 1
    assert 2 in threads


def test_a_block_with_a_pause_is_repeated(
    apply: Callable[..., Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training evaluates once, for longer than a block takes."""
    monkeypatch.setattr("tests.unit.inject.conftest.Notes", Trying)
    monkeypatch.setattr(trial_blocks, "BLOCK_SECONDS", 0.01)
    notes = apply("trials=foreach")
    steps = 0

    def evaluate(_: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == 8:
            notes.pauses = 1  # type: ignore[attr-defined]
            time.sleep(30 * LONG)

    train(evaluate)
    assert max(ratios(notes, "trials=foreach".partition("=")[2])["foreach"]) < 5


def test_a_real_training_is_ended_after_the_last_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINMARK_CHANGES", "trials=no-gc")
    run = observed(Path(__file__).parent / "scripts" / "slow" / "collects.py", folder=tmp_path)
    assert run.code == 0, run.err
    assert run.reports[-1]["ended_early"]
    found = json.loads(run.reports[-1]["changed"]["trials=no-gc"])
    assert len(found["no-gc"]) == 3
    assert min(found["no-gc"]) > 2


class Counting(torch.optim.Optimizer):
    """Keeps a number for each weight."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights, {"lr": 0.1})

    def step(self, closure: Any = None) -> None:
        for weight in self.param_groups[0]["params"]:
            state = self.state[weight]
            state["step"] = state.get("step", 0) + 1


def test_numbers_of_an_optimiser_are_put_back_and_nothing_is_added() -> None:
    model = torch.nn.Linear(3, 2)
    counting = Counting(model.parameters())
    counting.step()
    state = State([model], [counting])
    for _ in range(5):
        counting.step()
    state.put_back()
    assert [each["step"] for each in counting.state.values()] == [1, 1]
    assert len(counting.state_dict()["state"]) == 2


def test_a_backward_pass_that_is_due_goes_on_after_it() -> None:
    """As in a GAN, of which one network steps before the other one's backward pass."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    loss = model(torch.ones(1, 3)).square().sum()
    State([model], []).put_back()
    loss.backward()
    assert model[0].weight.grad is not None


@pytest.mark.parametrize(
    "build",
    [
        lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9),
        lambda weights: torch.optim.AdamW(weights),
        lambda weights: torch.optim.AdamW(weights, amsgrad=True, fused=True),
    ],
)
def test_a_training_goes_on_as_it_did_from_the_same_state(build: Callable[..., Any]) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout())
    optimiser = build(model.parameters())

    def learn() -> list[float]:
        losses = []
        for _ in range(4):
            loss = model(torch.randn(8, 3)).square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    learn()
    state = State([model], [optimiser])
    expected = learn()
    for group in optimiser.param_groups:
        group["lr"] = 0.5
    state.put_back()
    assert learn() == expected
    state.put_back()
    assert learn() == expected


def test_the_scale_of_gradients_is_put_back() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(torch.ones(()))
    state = State([], [], [scaler])
    scaler.update(2.0)
    state.put_back()
    assert scaler.get_scale() == 8.0
