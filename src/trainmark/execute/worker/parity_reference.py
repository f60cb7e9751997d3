"""Choose the steps that ``trainmark parity`` compares, and compute them with the reference.

The steps are the first ones of a training on a small part of the training set, those around the end
of its first epoch and those around a change of the learning rate. Each starts from a state of the
reference's own training, rounded to what every backend can represent.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import EpochPlan
from trainmark.backends.numpy.optimizers import updated
from trainmark.backends.numpy.reference import SHOWN, Expected, Reference, pooled
from trainmark.backends.stepwise import Arrays, State
from trainmark.data.dataset import Dataset
from trainmark.errors import TrainmarkError
from trainmark.execute.protocol.answers import ReferenceComputed
from trainmark.execute.protocol.wire import Send
from trainmark.execute.protocol.worker_commands import ComputeReference
from trainmark.execute.worker.order import epoch_plans
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.optimizers import corners, slots_of
from trainmark.workload.spec import Workload

STEPS = 10
"""Number of compared steps; an epoch of the part has fewer."""
_BATCHES = 6 + 1 / 3
"""Number of batches in an epoch of the part; the last one is smaller."""
_FULL = 4_000
"""Number of examples if a batch is the whole training set."""
_STEPS_OF_NEXT_EPOCH = 3
"""Number of steps of a second epoch whose order is checked, to see that it is a new one."""
_MAYBE_EMPTY = ("activations", "activation_moves", "untrained", "untrained_moves")
"""Groups of arrays that a file does not contain if they are empty."""
_M_TRIM_THRESHOLD = -1
"""Parameter of glibc's ``mallopt``: free bytes above which memory returns to the system."""
_M_MMAP_THRESHOLD = -3
"""Parameter of glibc's ``mallopt``: bytes above which an allocation gets its own pages."""
_MOVES = 1 << 22  # a random stream different from those of weights and orders


@dataclass(frozen=True)
class ParityStep:
    """A step to compute, and what the reference computes.

    Args:
        examples: indices of its examples.
        shown: indices of those whose activations are compared.
    """

    state: State
    examples: NDArray[np.int64]
    shown: NDArray[np.int64]
    expected: Expected


def cut(data: Dataset, workload: Workload) -> Dataset:
    """Return a part of the training set that has the steps to compare, and the test set."""
    size = workload.batches.size
    wanted = _FULL if size == "full" else round(_BATCHES * size)
    return dataclasses.replace(data, train=data.train.part(wanted), complete=False)


def plans_of(workload: Workload, examples: int, seed: int) -> Iterator[EpochPlan]:
    """Yield the epochs of a long training on the part, each one pass."""
    long = workload.with_schedule(
        epochs=1_000, steps=None, steps_per_epoch=None, dataset_repeats=1, until=None
    )
    return epoch_plans(long, examples, seed, inject=True)


def batches_of(plan: EpochPlan, examples: int) -> list[NDArray[np.int64]]:
    """Return the examples of each step."""
    return (
        [np.arange(examples)] * len(plan.sizes) if plan.order is None else plan.batches(plan.order)
    )


def ordered_plans(workload: Workload, examples: int, seed: int) -> list[EpochPlan]:
    """Return an epoch and the start of the next, to check the order of batches."""
    first, second = itertools.islice(plans_of(workload, examples, seed), 2)
    sizes = second.sizes[:_STEPS_OF_NEXT_EPOCH]
    order = None if second.order is None else second.order[: sum(sizes)]
    return [first, EpochPlan(sizes, order, second.whole)]


def compute_reference(request: ComputeReference, send: Send) -> None:
    """Compute the steps to compare, and write them to the file of ``request``."""
    _keep_memory()
    workload = request.workload.deterministic()
    seed = request.options.seed
    data = cut(request.dataset.load(), workload)
    model = lay_out(workload)
    images = data.train.images
    labels = data.train.labels
    reference = Reference(
        workload, model, request.options.precision, np.random.default_rng([seed, _MOVES])
    )
    weights = _representable(initial_weights(model, seed))
    trained = {name: weights[name] for name in model.trained}
    zeros = {name: np.zeros_like(value) for name, value in trained.items()}
    slots = dict.fromkeys(slots_of(workload.optimizer), zeros)
    state = State(weights, slots, trained if workload.weight_average else {})
    tree: dict[str, Any] = {"order": _order_losses(reference, workload, data, weights, seed)}
    steps: list[tuple[State, NDArray[np.int64]]] = []
    found: list[Expected] = []
    chosen = _chosen(workload, len(data.train), seed)
    for number, (step, batch) in enumerate(chosen):
        state = dataclasses.replace(state, step=step)
        steps.append((state, batch))
        shows = number in (0, len(chosen) - 1)  # activations are large
        result = reference.step(
            state.weights, images[batch], labels[batch].astype(np.int64), shows=shows
        )
        found.append(result)
        state = _next(workload, state, result)
        moves = [
            result.loss_moves,
            *result.gradient_moves.values(),
            *result.activation_moves.values(),
        ]
        if not all(
            np.isfinite(each).all()
            for each in (np.array([result.loss, *moves]), *state.weights.values())
        ):
            fix = "Lower the learning rate, or compare another --seed."
            raise TrainmarkError(
                f"the training diverges in step {step}, for the reference too", fix=fix
            )
        send(ReferenceComputed(number + 1, len(chosen)))
    for number, ((state, batch), expected) in enumerate(zip(steps, pooled(found), strict=True)):
        examples = np.repeat(batch, expected.repeats)
        tree[f"{number}"] = dataclasses.asdict(ParityStep(state, examples, batch[:SHOWN], expected))
    np.savez(request.place, **dict(_flat(tree)))


def _next(workload: Workload, state: State, found: Expected) -> State:
    """Return the state after an update, rounded to what every backend can represent."""
    after = updated(workload.optimizer, state, found.gradients)
    average: Arrays = {}
    if workload.weight_average:
        share = 1 - workload.weight_average.decay_at(state.step)
        average = {
            name: old + share * (after.weights[name] - old) for name, old in state.average.items()
        }
    slots = {slot: _representable(arrays) for slot, arrays in after.slots.items()}
    weights = {**after.weights, **found.untrained}
    return State(_representable(weights), slots, _representable(average), after.step)


def _representable(arrays: Arrays) -> dict[str, NDArray[np.float64]]:
    return {name: value.astype(np.float32).astype(np.float64) for name, value in arrays.items()}


def parity_steps(place: Path) -> tuple[list[ParityStep], NDArray[np.float64]]:
    """Return what :func:`compute_reference` wrote.

    It has the steps, and the losses of batches from the initial weights.
    """
    with np.load(place, allow_pickle=False) as file:
        tree = _nested({name: file[name] for name in file.files})
    order = tree.pop("order")
    found = [
        ParityStep(
            State(
                **{"slots": {}, "average": {}, **each["state"], "step": int(each["state"]["step"])}
            ),
            each["examples"],
            each["shown"],
            Expected(**{**{group: {} for group in _MAYBE_EMPTY}, **each["expected"]}),
        )
        for _, each in sorted(tree.items(), key=lambda item: int(item[0]))
    ]
    return found, order


def _chosen(workload: Workload, examples: int, seed: int) -> list[tuple[int, NDArray[np.int64]]]:
    """Return the steps to compare, with their examples."""
    plans = plans_of(workload, examples, seed)
    every = itertools.chain.from_iterable(batches_of(plan, examples) for plan in plans)
    steps = list(enumerate(itertools.islice(every, STEPS)))
    later = [number for number in corners(workload.optimizer) if number >= STEPS]
    return steps + [(number, steps[number % 2][1]) for number in later]


def _order_losses(
    reference: Reference, workload: Workload, data: Dataset, weights: dict[str, Any], seed: int
) -> NDArray[np.float64]:
    train = data.train
    losses = []
    for plan in ordered_plans(workload, len(train), seed):
        for each in batches_of(plan, len(train)):
            labels = train.labels[each].astype(np.int64)
            losses.append(reference.loss(weights, train.images[each], labels))
    return np.array(losses)


def _keep_memory() -> None:
    """Let glibc keep freed memory: a third of the time goes into fresh pages otherwise."""
    with contextlib.suppress(AttributeError, OSError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_MMAP_THRESHOLD, 1 << 30)
        set_option(_M_TRIM_THRESHOLD, (1 << 31) - 1)


def _flat(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}/")
        else:
            yield f"{before}{name}", value


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *folders, name = path.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = value if value.ndim else value.item()
    return tree
