"""Compute the steps of the reference with a backend.

Each result is held against the reference's.

A step starts from the state that the file gives, so nothing that an earlier step rounded is in it.
Losses and gradients are compared by norm with what rounding moves
(:mod:`trainmark.backends.numpy.arithmetic`). The update is computed again in float64 from the
backend's own gradients; its bound is the classical one, element by element: each of its few
operations rounds once (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 2.2).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainmark.backends import registry
from trainmark.backends.base import Backend, EpochPlan, Options, Trainer
from trainmark.backends.numpy.arithmetic import unit_of_sums
from trainmark.backends.numpy.optimizers import updated
from trainmark.backends.numpy.reference import Expected
from trainmark.backends.stepwise import Arrays, State, Stepwise
from trainmark.data.dataset import Dataset
from trainmark.errors import TrainmarkError, assert_never
from trainmark.execute.protocol.answers import FreeLosses, NotChecked, StepChecked
from trainmark.execute.protocol.wire import Send
from trainmark.execute.protocol.worker_commands import CheckParity
from trainmark.execute.worker.parity_reference import (
    ParityStep,
    cut,
    ordered_plans,
    parity_steps,
    plans_of,
)
from trainmark.record.checks import Check, CheckedPart, StepChecks
from trainmark.workload.layers import Attention, ChannelDropout, Dropout, every
from trainmark.workload.model import LayerPlan, lay_out
from trainmark.workload.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop
from trainmark.workload.precision import PRECISIONS
from trainmark.workload.spec import Workload

_MARGIN = 4.0
"""Allowed error of a norm, as a multiple of what rounding moves in the reference."""
_OPERATIONS = 16
"""Maximum number of roundings in an update; Adam's has the most."""
_LAST = 2
"""Allowed error of a rounding to the size of the weight itself: twice the largest, in units in the
last place."""
_DEVIATIONS = 8.0
"""Allowed deviation of a random share, in standard deviations."""
_SEEN = 0.1
"""Largest relative bound below which the effect of dropout on a gradient shows."""
_CHAOS = 0.1
"""Allowed difference between the losses of steps in one call and in single calls, as a share of the
change in loss."""
_NO_RATE = 1e-25
"""A learning rate that changes no weight."""
_TOGETHER = 4
"""Number of steps that a program is compiled for, so that it is the one that trains an epoch."""
_LANES = 8
"""Minimum number of partial sums of a norm; PyTorch has this many on a CPU."""
_SMALLEST = 1e-37
"""Numbers below this may be flushed to zero."""


@dataclass(frozen=True)
class _Subject:
    """What is checked."""

    backend: Backend
    workload: Workload
    data: Dataset
    options: Options
    tick: Callable[[], None]

    def trainer(self, workload: Workload) -> Trainer:
        return self.backend.trainer(workload, lay_out(workload), self.data, self.options)

    def run(self, trainer: Trainer, step: ParityStep) -> float:
        """Train one step on the examples of ``problem``; returns its loss."""
        trainer.begin_epoch(EpochPlan((len(step.examples),), step.examples))
        loss = float(trainer.read(trainer.train(1, self.tick)).losses[0])
        trainer.synchronize()
        return loss


def check_parity(
    request: CheckParity,
    send: Send,
    tick: Callable[[], None],
    backends: Callable[[str], Backend] = registry.load,
) -> None:
    """Check the steps, the order of batches and dropout; then train freely."""
    workload = request.workload.deterministic()
    options = dataclasses.replace(request.options, keeps_gradients=True)
    data = cut(request.dataset.load(), workload)
    (found, order) = parity_steps(Path(request.reference))
    subject = _Subject(backends(request.backend), workload, data, options, tick)
    trainer = subject.trainer(workload)
    first = found[0]
    trainer.load(_float32(first.state.weights))
    size = len(first.examples)
    sizes = (size,) * _TOGETHER + tuple({len(step.examples) for step in found} - {size})
    trainer.compile(EpochPlan(sizes, np.resize(first.examples, sum(sizes))))
    update = _Update(workload, unit_of_sums(options.precision))
    for step in found:
        send(StepChecked(_checked(subject, trainer, step, update)))
    if not isinstance(trainer, Stepwise):
        parts = "layers, gradients, updates and state"
        send(NotChecked(f"{parts} are not checked: the backend can't set and read its state"))
    else:
        if not _repeats(subject, trainer, first):
            send(NotChecked("it is not deterministic: two equal steps gave different results"))
        send(StepChecked(StepChecks(None, (_carried(subject, trainer, first),))))
    _check_order(subject, first, order, send)
    layers = list(every(request.workload.model))
    dropouts = [layer for layer in layers if isinstance(layer, (Dropout, ChannelDropout))]
    attentions = [layer for layer in layers if isinstance(layer, Attention)]
    if any(layer.rate > 0 for layer in dropouts):
        _check_dropout(subject, request.workload.without_distortions(), first, send)
    if any(layer.dropout > 0 for layer in attentions):
        send(NotChecked("dropout inside attention is not checked"))
    if request.workload.without_distortions() is not request.workload:
        send(NotChecked("distortions are not checked"))
    trainer.load(_float32(first.state.weights))
    losses: list[float] = []
    for plan in plans_of(workload, len(data.train), options.seed):
        left = request.free_steps - len(losses)
        if left <= 0:
            break
        trainer.begin_epoch(plan)
        losses += trainer.read(trainer.train(min(len(plan.sizes), left), tick)).losses.tolist()
    send(FreeLosses(losses))


def _checked(subject: _Subject, trainer: Trainer, step: ParityStep, update: _Update) -> StepChecks:
    """Check one step, as far as the trainer can set and read its state."""
    expected = step.expected
    before = step.state
    checks: list[Check] = []
    if isinstance(trainer, Stepwise):
        trainer.set_state(before)
        _require_same_shapes(before, trainer.state())
        found = trainer.activations(step.shown, training=False) if expected.activations else {}
        for name, value in expected.activations.items():
            part: CheckedPart = "input" if name == "input" else "forward"
            checks.append(
                _compared(part, name, found.get(name), value, expected.activation_moves[name])
            )
    else:
        trainer.load(_float32(before.weights))
    loss = subject.run(trainer, step)
    of_loss = _compared("loss", "", np.array(loss), np.array(expected.loss), expected.loss_moves)
    if not isinstance(trainer, Stepwise):
        checks.append(of_loss)
    else:
        after = trainer.state()
        updates = after.step - before.step
        if updates == 1:
            checks.append(of_loss)
            checks += _of_update(expected, before, trainer.gradients(), after, update)
        else:
            # The batches of several updates can't be told apart, so nothing else is compared.
            checks.append(Check("order", f"{updates} updates in a step", math.inf, 0.0))
    return StepChecks(before.step, tuple(checks), expected.near_kinks, loss, expected.loss)


def _of_update(
    expected: Expected, before: State, gradients: Arrays, after: State, update: _Update
) -> Iterator[Check]:
    """Compare the gradients of a step, and what it made of weights, slots and statistics."""
    for name, value in expected.gradients.items():
        moves = expected.gradient_moves[name]
        yield _compared("gradient", name, gradients.get(name), value, moves)
    yield from update.checks(before, gradients, after)
    for name, value in expected.untrained.items():
        moves = expected.untrained_moves[name]
        yield _compared("state", name, after.weights.get(name), value, moves)


def _repeats(subject: _Subject, trainer: Any, step: ParityStep) -> bool:
    """Whether a step gives the same result twice."""
    results = []
    for _ in range(2):
        trainer.set_state(step.state)
        results.append({"loss": subject.run(trainer, step), **trainer.state().weights})
    one, other = results
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


def _carried(subject: _Subject, trainer: Any, step: ParityStep) -> Check:
    """Check that several steps in one call have about the same losses as single calls.

    All steps use the same batch.
    """
    plan = EpochPlan((len(step.examples),) * _TOGETHER, np.tile(step.examples, _TOGETHER))
    found = []
    for calls in ((_TOGETHER,), (1,) * _TOGETHER):
        trainer.set_state(step.state)
        trainer.begin_epoch(plan)
        found.append(
            np.concatenate(
                [trainer.read(trainer.train(steps, subject.tick)).losses for steps in calls]
            )
        )
    together, single = map(np.nan_to_num, found)  # a large learning rate may diverge here
    bound = _MARGIN * step.expected.loss_moves + _CHAOS * float(np.ptp(single))
    return _elementwise(
        "state", f"{_TOGETHER} steps in one call", together, single, np.full(_TOGETHER, bound)
    )


class _Update:
    """The update in float64, with a bound for each element."""

    def __init__(self, workload: Workload, unit: float) -> None:
        self._spec = workload.optimizer
        self._average = workload.weight_average
        self._unit = unit
        sums, coefficient = _roundings(workload.optimizer)
        self._units = _OPERATIONS + coefficient
        self._last = _LAST * sums

    def checks(self, before: State, gradients: Arrays, after: State) -> Iterator[Check]:
        """Compare the results of a step with those from the same gradients.

        They are the weights, the optimiser's state and the average.
        """
        with np.errstate(all="ignore"):
            expected = updated(self._spec, before, gradients)
            sizes = self._sizes(before, gradients)
        units = self._units
        # Small squares vanish next to their sum, so the roundings of a norm don't average out.
        if self._spec.clip_norm is not None:
            units += 0.5 * max(each.size for each in gradients.values()) / _LANES
        for name in filter(gradients.__contains__, expected.weights):
            value = expected.weights[name]
            change = value - before.weights[name]
            last = self._last * self._unit * np.abs(value)
            others = self._unit * units * sizes.weights[name]
            yield _elementwise(
                "update",
                name,
                after.weights[name],
                value,
                last + others,
                float(np.abs(change).max()),
            )
            yield _all_alike(name, after.weights[name], value, change, last, others)
        for slot, arrays in expected.slots.items():
            for name, value in arrays.items():
                bound = self._unit * units * np.abs(sizes.slots[slot][name])
                yield _elementwise(
                    "state", f"{slot} of {name}", after.slots[slot][name], value, bound
                )
        if self._average is not None:
            share = 1 - self._average.decay_at(before.step)
            for name, old in before.average.items():
                value = old + share * (after.weights[name] - old)
                bound = self._unit * _OPERATIONS * (np.abs(old) + np.abs(after.weights[name]))
                yield _elementwise("state", f"average of {name}", after.average[name], value, bound)

    def _sizes(self, before: State, gradients: Arrays) -> State:
        """Return an update and the size of the sums in its slots.

        Instead of new weights it has their update, and slots add up absolute values.
        """
        sign = -1 if isinstance(self._spec, SGD) and self._spec.momentum_form == "velocity" else 1
        weights = {name: sign * np.abs(each) for name, each in before.weights.items()}
        signed = {name: sign * np.abs(each) for name, each in gradients.items()}
        slots = {
            slot: {name: np.abs(each) for name, each in arrays.items()}
            for slot, arrays in before.slots.items()
        }
        after = updated(self._spec, State(weights, slots, step=before.step), signed)
        return State(
            {name: np.abs(each - weights[name]) for name, each in after.weights.items()},
            after.slots,
        )


def _elementwise(
    part: CheckedPart, name: str, found: Any, expected: Any, bound: Any, size: float | None = None
) -> Check:
    """Return the element that is the largest multiple of its bound.

    It is relative to ``size`` or to the largest element.
    """
    error = np.abs(found - expected)
    bound = bound + _SMALLEST
    worst = int(np.nan_to_num(error / bound, nan=math.inf).argmax())
    size = size or float(np.abs(expected).max()) or 1.0
    return Check(part, name, float(error.flat[worst]) / size, float(bound.flat[worst]) / size)


def _all_alike(name: str, found: Any, expected: Any, change: Any, last: Any, others: Any) -> Check:
    """Check by which factor all changes of a weight differ.

    It reveals far smaller factors than a single element does.

    Changes that a rounding may swallow don't count: many are swallowed alike.

    Args:
        last: bounds of roundings to the size of the weight: the same for equal weights, else
            independent, so they average out.
        others: bounds of the other roundings, which a rounded coefficient may make equal.
    """
    change = np.where(np.abs(change) > last, change, 0.0)
    squares = float((change**2).sum()) or 1.0
    factor = float(((found - expected) * change).sum()) / squares
    equal = np.unique(expected.astype(np.float32), return_inverse=True)[1].ravel()
    sums = np.bincount(equal, np.abs(last * change).ravel())
    rounded = min(_DEVIATIONS * float(np.linalg.norm(sums)), float(sums.sum()))
    bound = (rounded + float((others * np.abs(change)).sum())) / squares
    return Check(
        "update", name, abs(factor) if math.isfinite(factor) else math.inf, bound, 1 + factor
    )


def _roundings(spec: Optimizer) -> tuple[int, float]:
    """Return how often an update rounds to the size of the weight itself.

    Also returns how many units ``1 - β`` may be off if β is rounded first.
    """
    match spec:
        case SGD():
            return 2 if spec.nesterov else 1, 0.0
        case Adam() | AdamW():
            # Weight decay rounds three times: its factor, the product and the sum.
            sums = 3 if isinstance(spec, AdamW) else 1
            return sums, 1 / (1 - max(spec.beta1, spec.beta2))
        case RMSprop():
            return 1, 1 / (1 - spec.rho)
        case _:
            assert_never(spec)


def _compared(part: CheckedPart, name: str, found: Any, expected: Any, moves: float) -> Check:
    """Compare by norm."""
    if np.shape(found) != expected.shape or found is None:
        what = f"the backend returns no such array: {part}, {name}"
        raise TrainmarkError(
            what, expected=f"the shape {expected.shape}", found=f"the shape {np.shape(found)}"
        )
    size, error = (float(np.sqrt((each**2).sum())) for each in (expected, found - expected))
    size = size or 1.0
    factor = float((found * expected).sum()) / size**2
    finite = math.isfinite(error)
    return Check(
        part,
        name,
        error / size if finite else math.inf,
        _MARGIN * moves / size,
        factor if finite else None,
    )


def _check_order(subject: _Subject, first: ParityStep, expected: Any, send: Send) -> None:
    """Train an epoch and the start of the next without moving.

    Each loss then identifies its batch.
    """
    workload = subject.workload
    losses = []
    optimizer = dataclasses.replace(workload.optimizer, learning_rate=_NO_RATE, lr_schedule=None)
    still = dataclasses.replace(workload, optimizer=optimizer)
    trainer = subject.trainer(still)
    plans = ordered_plans(workload, len(subject.data.train), subject.options.seed)
    trainer.load(_float32(first.state.weights))
    trainer.compile(plans[0])
    for plan in plans:
        trainer.begin_epoch(plan)
        losses.append(trainer.read(trainer.train(len(plan.sizes), subject.tick)).losses)
    found = np.concatenate(losses)
    bound = _MARGIN * first.expected.loss_moves
    size = float(np.abs(expected).mean()) or 1.0
    if found.shape != expected.shape:
        check = Check("order", f"{len(found)} losses for {len(expected)} steps", math.inf, 0.0)
    else:
        apart = np.nan_to_num(np.abs(found - expected), nan=math.inf)
        check = Check("order", f"step {apart.argmax()}", float(apart.max()) / size, bound / size)
    send(StepChecked(StepChecks(None, (check,))))
    if float(np.abs(np.diff(expected)).max()) < bound and workload.batches.size != "full":
        send(
            NotChecked(
                "the losses can't tell the order of batches: they differ by less than rounding"
            )
        )


def _check_dropout(subject: _Subject, workload: Workload, first: ParityStep, send: Send) -> None:
    """Check the scale and the share of the masks of each dropout layer.

    Also checks that they change a step.
    """
    trainer = subject.trainer(workload)
    model = lay_out(workload)
    if not isinstance(trainer, Stepwise):
        send(
            NotChecked(
                "dropout is not checked: the backend doesn't return the outputs of its layers"
            )
        )
        return
    trainer.load(_float32(first.state.weights))
    # A compiled trainer draws the same masks as in a training.
    trainer.compile(EpochPlan((len(first.examples),), first.examples))
    found = trainer.activations(first.examples[:200], training=True)
    unit = 2.0 ** -(PRECISIONS[subject.options.precision].fraction_bits + 1)
    checks: list[Check] = []
    for before, plan in _with_inputs(model.layers, "input"):
        if isinstance(plan.layer, (Dropout, ChannelDropout)) and 0 < plan.layer.rate < 1:
            checks += _of_mask(plan.name, plan.layer, found[before], found[plan.name], unit)
    last = model.weighted_layers[-1]
    gradients = list[Any]()
    name = last.key(next(iter(last.weights)))  # its gradient is made of what dropout keeps
    for step in (first.state.step, first.state.step + 1):
        trainer.set_state(dataclasses.replace(first.state, step=step))
        subject.run(trainer, first)
        gradients.append(trainer.gradients().get(name))
    expected = first.expected.gradients[name]
    moves = first.expected.gradient_moves[name]
    difference = _compared("gradient", name, gradients[0], expected, moves)
    if difference.share <= 1 and difference.bound < _SEEN:
        checks.append(Check("dropout", "off in training", math.inf, 0.0))
    elif np.array_equal(*gradients):
        checks.append(Check("dropout", "the same masks in every step", math.inf, 0.0))
    send(StepChecked(StepChecks(None, tuple(checks))))


def _with_inputs(plans: Sequence[LayerPlan], before: str) -> Iterator[tuple[str, LayerPlan]]:
    """Yield each layer after the name of the layer whose output it takes."""
    for plan in plans:
        yield from _with_inputs(plan.body, before)
        yield from _with_inputs(plan.shortcut, before)
        yield before, plan
        before = plan.name


def _of_mask(
    name: str, layer: Dropout | ChannelDropout, x: Any, y: Any, unit: float
) -> Iterator[Check]:
    """Check the mask that turned ``x`` into ``y``."""
    there = x != 0
    kept = (y != 0) & there
    scaled = np.where(kept, x / (1 - layer.rate), 0.0)
    yield _compared("dropout", name, y, scaled, unit * float(np.sqrt((scaled**2).sum())))
    if isinstance(layer, ChannelDropout):
        axes = tuple(range(1, x.ndim - 1))
        torn = kept.any(axis=axes) & (there & ~kept).any(axis=axes)
        yield Check("dropout", f"{name}, whole maps", float(np.count_nonzero(torn)), 0.5)
        kept = kept.any(axis=axes)
        there = there.any(axis=axes)
    count = np.count_nonzero(there) or 1
    bound = _DEVIATIONS * math.sqrt(layer.rate * (1 - layer.rate) / count)
    yield Check(
        "dropout",
        f"{name}, share kept",
        abs(np.count_nonzero(kept) / count - 1 + layer.rate),
        bound,
    )


def _require_same_shapes(given: State, found: State) -> None:
    """Raise an error if a trainer returns other arrays than it was given."""
    expected = _shapes(given)
    got = _shapes(found)
    for name in sorted(expected.keys() | got.keys()):
        one, other = (str(shapes.get(name, "nothing")) for shapes in (expected, got))
        if one != other:
            problem = f"the backend returns other arrays than it was given, at {name}"
            raise TrainmarkError(problem, expected=one, found=other)


def _shapes(state: State) -> dict[str, tuple[int, ...]]:
    groups = {"weights": state.weights, "average": state.average, **state.slots}
    shapes = {}
    for group, arrays in groups.items():
        for name, value in arrays.items():
            shapes[f"{group} of {name}"] = np.shape(value)
    return shapes


def _float32(arrays: Arrays) -> dict[str, Any]:
    return {name: value.astype(np.float32) for name, value in arrays.items()}
