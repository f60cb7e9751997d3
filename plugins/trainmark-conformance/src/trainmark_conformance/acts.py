"""Acts: small trainings that are done with a backend's trainer and with the oracle's, to compare
their results.

An act takes a trainer that has loaded the first weights of a case, and the case. It returns arrays
by name. A prefix is put before these names, to tell the results of several trainings apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainmark.backends.base import EpochPlan, Steps, Trainer
from trainmark.backends.stepwise import Arrays, State
from trainmark.workload.optimizers import slots_of
from trainmark_conformance.cases import Case
from trainmark_conformance.oracle import Results


def no_tick() -> None:
    """Do nothing after a step."""


def train(trainer: Trainer, plan: EpochPlan) -> Steps:
    """Train one epoch, wait for it, and return its results."""
    trainer.begin_epoch(plan)
    results = trainer.train(len(plan.sizes), no_tick)
    trainer.synchronize()
    return trainer.read(results)


def part(plan: EpochPlan, steps: slice) -> EpochPlan:
    """Return some of the steps of an epoch."""
    places = np.split(np.arange(sum(plan.sizes)), np.cumsum(plan.sizes)[:-1])
    taken = np.concatenate(places[steps])
    order, draws = (each if each is None else each[taken] for each in (plan.order, plan.augmented))
    return replace(plan, sizes=plan.sizes[steps], order=order, augmented=draws)


def of_steps(steps: Steps | Sequence[Steps], case: Case, prefix: str = "") -> Results:
    """Return losses and, if the workload has them, L2 losses and hits, ``[steps]``."""
    parts = [steps] if isinstance(steps, Steps) else steps
    results: Results = {f"{prefix}losses": np.concatenate([part.losses for part in parts])}
    l2_losses = [part.l2_losses for part in parts if part.l2_losses is not None]
    if l2_losses:
        results[f"{prefix}L2 losses"] = np.concatenate(l2_losses)
    if case.workload.metrics.train == "running":
        results[f"{prefix}hits"] = np.concatenate([part.hits for part in parts])
    return results


def of_weights(trainer: Trainer, prefix: str = "") -> Results:
    """Return the current weights."""
    return {f"{prefix}{name}": value for name, value in trainer.weights().items()}


def of_state(trainer: Any, prefix: str = "") -> Results:
    """Return the state of a step-wise trainer."""
    state = trainer.state()
    parts = {"weight": state.weights, "average": state.average, **state.slots}
    results = {
        f"{prefix}{what} of {name}": x
        for what, arrays in parts.items()
        for name, x in arrays.items()
    }
    return results | {f"{prefix}step": np.array([state.step])}


def of_evaluations(trainer: Trainer, case: Case, prefix: str = "") -> Results:
    """Return the loss and hits on the training and the test set, ``[2]``."""
    train_set = trainer.evaluate("train")
    test_set = trainer.evaluate("test")
    right = [train_set.accuracy * len(case.data.train), test_set.accuracy * len(case.data.test)]
    return {
        f"{prefix}evaluated losses": np.array([train_set.loss, test_set.loss]),
        f"{prefix}evaluated hits": np.round(right).astype(np.int64),
    }


def look(trainer: Trainer, case: Case) -> Results:
    """Return outputs and evaluations of the first weights."""
    return {"outputs": trainer.outputs(case.data.test.images), **of_evaluations(trainer, case)}


def one_step(trainer: Trainer, case: Case) -> Results:
    """Return the results of one step, and its gradients ``(w0 - w1) / rate`` from the weights
    before and after it.

    Running averages have no gradient; they are returned as they are.
    """
    before = trainer.weights()
    results = of_steps(train(trainer, case.plan), case)
    rate = np.float32(case.workload.optimizer.learning_rate)
    after = of_weights(trainer)
    gradients = {
        f"gradient of {name}": (before[name] - after.pop(name)) / rate
        for name in case.model.trained
    }
    return {**results, **gradients, **after}


def step_by_step(trainer: Trainer, case: Case) -> Results:
    """Train an epoch one step at a time, with the weights after each; its results are read at the
    end.
    """
    trainer.compile(case.plan)
    trainer.begin_epoch(case.plan)
    queued = []
    results = of_weights(trainer, "first ")
    for step in range(len(case.sizes)):
        queued.append(trainer.train(1, no_tick))
        results |= of_weights(trainer, f"after step {step}, ")
    trainer.synchronize()
    return results | of_steps([trainer.read(each) for each in queued], case)


def losses_alone(trainer: Trainer, case: Case) -> Results:
    """Return the losses of an epoch. No weights: rounding moves some far if an optimiser divides by
    small roots.
    """
    trainer.compile(case.plan)
    return of_steps(train(trainer, case.plan), case)


def without_draws(trainer: Trainer, case: Case) -> Results:
    """Return the losses of an epoch whose images are not augmented."""
    return of_steps(train(trainer, replace(case.plan, augmented=None)), case)


def everything(trainer: Any, case: Case) -> Results:
    """Return all that a step-wise trainer shows, before an epoch, after its first step and at its
    end.
    """
    some = np.array([5, 1, 8, 8, 2])
    activations = trainer.activations(some, training=False)
    results = {f"output of {name}": value for name, value in activations.items()}
    trainer.compile(case.plan)
    trainer.begin_epoch(case.plan)
    for count in (1, len(case.sizes) - 1):
        results |= of_steps(trainer.read(trainer.train(count, no_tick)), case, f"{count} steps: ")
        results |= of_state(trainer, f"{count} steps: ")
        results |= {
            f"{count} steps: gradient of {name}": value
            for name, value in trainer.gradients().items()
        }
    if case.workload.is_text:
        evaluation = trainer.evaluate("train", some)
        results["evaluation of some"] = np.array([evaluation.loss, evaluation.accuracy])
    return {**results, **look(trainer, case)}


def from_a_state(trainer: Any, case: Case) -> Results:
    """Return a state that was set, and the one after a step from it. Its numbers are positive,
    nearly all different.
    """
    rng = np.random.default_rng(5)
    trained = case.model.trained

    def drawn(names: Iterable[str]) -> Arrays:
        return {
            name: rng.random(case.weights[name].shape, np.float32).astype(np.float64)
            for name in names
        }

    slots = {slot: drawn(trained) for slot in slots_of(case.workload.optimizer)}
    average = drawn(trained) if case.workload.weight_average else {}
    trainer.set_state(State(drawn(case.weights), slots, average, step=5))
    results = of_state(trainer, "set: ")
    train(trainer, part(case.plan, slice(1)))
    return results | of_state(trainer, "after a step: ")


def two_epochs(trainer: Trainer, case: Case, compiled: bool = False) -> Results:
    """Train two epochs, the second with the state that the first left, and return the weights after
    both.
    """
    results: Results = {}
    for epoch in range(2):
        if compiled:
            trainer.compile(case.plan)
        results |= of_steps(train(trainer, case.plan), case, f"epoch {epoch}: ")
    return {**results, **of_weights(trainer)}


def two_epochs_compiled(trainer: Trainer, case: Case) -> Results:
    """Do the same, but compile before each epoch, which must change nothing."""
    return two_epochs(trainer, case, compiled=True)


def two_epochs_looked_at(trainer: Trainer, case: Case) -> Results:
    """Do the same with evaluations and outputs in between, which are results, too."""
    results: Results = {}
    for epoch in range(2):
        trainer.begin_epoch(case.plan)
        parts = [trainer.train(2, no_tick)]
        results |= of_evaluations(trainer, case, f"epoch {epoch}: ")
        results[f"epoch {epoch}: outputs"] = trainer.outputs(case.data.test.images)
        parts.append(trainer.train(len(case.sizes) - 2, no_tick))
        trainer.synchronize()
        results |= of_steps([trainer.read(part) for part in parts], case, f"epoch {epoch}: ")
    return {**results, **of_evaluations(trainer, case, "end: "), **of_weights(trainer)}


def two_epochs_read_late(trainer: Trainer, case: Case) -> Results:
    """Do the same in uneven pieces, which are read after both epochs, the last one first."""
    queued = []
    for _ in range(2):
        trainer.begin_epoch(case.plan)
        queued += [trainer.train(count, no_tick) for count in (2, 1, len(case.sizes) - 3)]
    trainer.synchronize()
    read = [trainer.read(each) for each in reversed(queued)][::-1]
    return {
        **of_steps(read[:3], case, "epoch 0: "),
        **of_steps(read[3:], case, "epoch 1: "),
        **of_weights(trainer),
    }


def loaded_again(trainer: Trainer, case: Case) -> Results:
    """Train the same epoch twice, each time from the first weights: nothing may be left of the
    first time.
    """
    results: Results = {}
    for time in ("first", "second"):
        trainer.load(case.weights)
        results |= of_steps(train(trainer, case.plan), case, f"{time} time: ")
        results |= of_evaluations(trainer, case, f"{time} time: ")
    return {**results, **of_weights(trainer)}
