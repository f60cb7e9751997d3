"""States that a trainer is given and must give back, also in the processes of Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainmark.backends.base import EpochPlan
from trainmark.backends.stepwise import State, Stepwise
from trainmark.workload.layers import Flatten, MaxPool, ReLU
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.optimizers import SGD, Adam, RMSprop, Staircase, WeightAverage, slots_of
from trainmark.workload.pixels import Input
from trainmark.workload.spec import Workload
from trainmark_conformance.cases import Case, a_workload, conv, dense
from trainmark_conformance.oracle import oracle_trainer

DOWN = Staircase(0.3, 2)
LAYERS = (conv(3, 3), MaxPool(2, 2), ReLU(), Flatten(), dense(5), ReLU(), dense(10))
"""A kernel after a flatten and images that aren't square, so that a swapped axis shows."""
WORKLOADS = {
    name: a_workload(*LAYERS, input=Input((8, 6, 2)), optimizer=optimizer, weight_average=average)
    for name, optimizer, average in (
        ("sgd", SGD(0.3), None),
        ("sgd, staircase", SGD(0.3, staircase=DOWN), None),
        ("buffer", SGD(0.3, 0.9), None),
        ("buffer, staircase", SGD(0.3, 0.9, staircase=DOWN), None),
        ("buffer, decay without biases", SGD(0.3, 0.9, weight_decay=0.1, decay_biases=False), None),
        ("velocity", SGD(0.3, 0.9, "velocity"), None),
        ("velocity, staircase", SGD(0.3, 0.9, "velocity", staircase=DOWN), None),
        ("adam", Adam(0.01), None),
        ("adam, staircase", Adam(0.01, staircase=DOWN), None),
        ("rmsprop", RMSprop(0.01), None),
        ("buffer, average", SGD(0.3, 0.9), WeightAverage(0.99)),
        ("velocity, staircase, average", SGD(0.3, 0.9, "velocity", staircase=DOWN), WeightAverage(0.99)),
        ("adam, average", Adam(0.01), WeightAverage(0.99)),
        ("rmsprop, average", RMSprop(0.01), WeightAverage(0.99)),
    )
}


TRAINED = ("buffer", "velocity", "velocity, staircase, average", "adam, average", "rmsprop, average")
"""One of each form in which a framework keeps its state; some compile for each."""


def a_state(workload: Workload, step: int) -> State:
    """Positive numbers of float32, nearly all different."""
    rng, weights = np.random.default_rng(step), initial_weights(lay_out(workload), seed=1)

    def drawn() -> dict[str, Any]:
        return {name: rng.random(value.shape, np.float32).astype(np.float64) for name, value in weights.items()}

    slots = {slot: drawn() for slot in slots_of(workload.optimizer)}
    return State(drawn(), slots, drawn() if workload.weight_average else {}, step)


def require_kept(make: Callable[[Case], Any], name: str) -> None:
    """Give a trainer two states, and fail unless it gives each back, and a step from it is NumPy's."""
    case = Case("states", WORKLOADS[name], (8,))
    trainer, oracle = make(case), oracle_trainer(case)
    assert isinstance(trainer, Stepwise), "or parity compares nothing but losses"
    for step in (0, 5):
        given = a_state(case.workload, step)
        trainer.set_state(given)
        require_same(trainer.state(), given, rtol=2.0**-23)
        if name in TRAINED:
            oracle.set_state(given)
            for each in (trainer, oracle):
                each.begin_epoch(EpochPlan((8,), np.arange(8)))
                each.read(each.train(1, lambda: None))
            require_same(trainer.state(), oracle.state(), rtol=1e-3)


def require_same(found: State, expected: State, rtol: float) -> None:
    """Fail unless two states are the same; a velocity that is kept as a buffer is divided by the rate, and rounded."""
    assert found.step == expected.step
    assert found.slots.keys() == expected.slots.keys()
    pairs = [(found.weights, expected.weights), (found.average, expected.average)]
    for one, other in [*pairs, *((found.slots[slot], arrays) for slot, arrays in expected.slots.items())]:
        assert one.keys() == other.keys()
        for name, value in other.items():
            np.testing.assert_allclose(one[name], value, rtol=rtol, atol=rtol * 1e-2, err_msg=name)
