"""Train again up to the step where a training went wrong: the worker's side of the diagnosis.

Trainmark decides the order of the examples, so that the batch of every step is known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends import registry
from trainmark.backends.base import Backend, EpochPlan, Options, Trainer, no_tick
from trainmark.backends.numpy.inspection import StepTensors, inspect_step
from trainmark.backends.parts import Separable
from trainmark.data.dataset import Dataset
from trainmark.execute.protocol.answers import Replayed, StepInspected
from trainmark.execute.protocol.wire import Send
from trainmark.execute.protocol.worker_commands import ReplayTraining
from trainmark.execute.worker.order import epoch_plans
from trainmark.record.inspection import OddExample, StepInspection
from trainmark.workload import pytorch_draws
from trainmark.workload.model import Model, Weights, initial_weights, lay_out
from trainmark.workload.pixels import augment, prepare
from trainmark.workload.pytorch_draws import Drawn
from trainmark.workload.reduce import with_batch
from trainmark.workload.spec import Workload

_ALONE = 4096
"""Most examples of the batch whose losses are computed one by one."""


@dataclass(frozen=True)
class _Training:
    """A training to repeat, always from the same initial weights."""

    backend: Backend
    workload: Workload
    model: Model
    data: Dataset
    options: Options
    start: Weights
    drawn: Drawn | None


def replay(
    request: ReplayTraining,
    send: Send,
    tick: Callable[[], None],
    backends: Callable[[str], Backend] = registry.load,
) -> None:
    """Find the first step whose loss is not finite, and inspect the steps that may show why."""
    workload = request.workload
    options = request.options
    model = lay_out(workload)
    data = request.dataset.load()
    drawn = pytorch_draws.draw(workload, model, len(data.train), len(data.test))
    start = drawn.weights if drawn else initial_weights(model, options.seed)
    training = _Training(backends(request.backend), workload, model, data, options, start, drawn)
    *_, losses = _trained(training, request.steps, tick)
    wrong = np.flatnonzero(~np.isfinite(losses))
    failed = int(wrong[0]) if wrong.size else None
    losses = losses if failed is None else losses[: failed + 1]
    send(Replayed(losses.tolist(), failed))
    for step in _worth_opening(losses, failed):
        send(StepInspected(_opened(training, step, tick)))


def _worth_opening(losses: NDArray[np.float64], failed: int | None) -> list[int]:
    """Return the steps that are worth inspecting.

    These are the first one, the one after which the loss rose most, the last good one, and the
    failure.
    """
    good = losses[:failed]
    rise = int(np.argmax(np.diff(good))) if len(good) > 1 else 0
    last = max((len(losses) if failed is None else failed) - 1, 0)
    return sorted({0, rise, last, failed or 0})


def _opened(training: _Training, step: int, tick: Callable[[], None]) -> StepInspection:
    """Inspect step ``step``, from 0.

    It has the backend's results, and the reference's from the same weights.
    """
    trainer, plan, place, _ = _trained(training, step, tick)
    before = trainer.weights()
    loss = float(trainer.read(trainer.train(1, tick)).losses[0])
    after = trainer.weights()
    batch = slice(None) if plan.order is None else plan.batches(plan.order)[place]
    split = training.data.train
    workload = training.workload
    x = prepare(workload.input, split.images[batch])
    labels = split.labels[batch]
    spec = workload.augmented_input
    if plan.augmented is not None and spec is not None:
        x = augment(spec, x, plan.batches(plan.augmented)[place])
    valid = labels < training.model.classes
    known = valid.reshape(len(labels), -1).all(axis=1)
    plain = workload.deterministic()
    inspected = inspect_step(plain, lay_out(plain), before, x[known], labels[known])
    matrices = [name for name in training.model.trained if before[name].ndim > 1]
    return StepInspection(
        step=step,
        loss=loss,
        tensors=inspected.tensors,
        reference_loss=float(inspected.losses.mean()) if known.any() else None,
        gap=inspected.gap if known.any() else None,
        bad_labels=tuple(sorted({int(label) for label in labels[~valid]})),
        unchanged=tuple(
            name for name, value in before.items() if np.array_equal(value, after[name])
        ),
        finite_after=bool(all(np.isfinite(value).all() for value in after.values())),
        moved={name: _moved(before[name], after[name]) for name in matrices},
        alone=_alone(training, before, batch, inspected) if not np.isfinite(loss) else (),
    )


def _trained(
    training: _Training, steps: int, tick: Callable[[], None]
) -> tuple[Trainer, EpochPlan, int, NDArray[np.float64]]:
    """Return a trainer after ``steps`` steps, or all there are.

    Also returns the next step's epoch, its position in it, and the losses.
    """
    workload = training.workload
    data = training.data
    options = training.options
    trainer = training.backend.trainer(workload, training.model, data, options)
    losses = np.zeros(0)
    trainer.load(training.start)
    for plan in epoch_plans(
        workload, len(data.train), options.seed, inject=True, drawn=training.drawn
    ):
        trainer.begin_epoch(plan)
        place = min(steps - len(losses), len(plan.sizes))
        if place:
            losses = np.concatenate([losses, trainer.read(trainer.train(place, tick)).losses])
        if place < len(plan.sizes):
            break
    trainer.synchronize()
    return trainer, plan, place, losses


def _moved(before: NDArray[np.float32], after: NDArray[np.float32]) -> float | None:
    """Return the largest change relative to the largest value; None if a value is not finite."""
    change = np.abs(after - before).max()
    return float(change / max(np.abs(before).max(), 1e-12)) if np.isfinite(change) else None


def _alone(
    training: _Training, weights: Weights, batch: Any, inspected: StepTensors
) -> tuple[OddExample, ...]:
    """Return the examples of the batch whose loss is not finite although the reference's is."""
    if training.model.joins_examples or not isinstance(training.backend, Separable):
        return ()
    options = dataclasses.replace(training.options, without=frozenset({"optimizer"}))
    if "optimizer" not in training.backend.parts(training.options):
        return ()
    taken = np.arange(len(training.data.train))[batch][:_ALONE]
    one_by_one = with_batch(training.workload.deterministic(), 1)
    trainer = training.backend.trainer(one_by_one, lay_out(one_by_one), training.data, options)
    trainer.load(weights)
    trainer.begin_epoch(EpochPlan((1,) * len(taken), taken))
    losses = trainer.read(trainer.train(len(taken), no_tick)).losses
    return tuple(
        OddExample(int(example), float(loss), float(own))
        for example, loss, own in zip(taken, losses, inspected.losses, strict=False)
        if not np.isfinite(loss) and np.isfinite(own)
    )
