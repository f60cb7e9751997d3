"""PyTorch with one mistake at a time, for ``bench/parity.py``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from trainmark.backends.base import Job
from trainmark.backends.stepwise import State
from trainmark.backends.torch import fast
from trainmark.backends.torch.backend import TorchBackend
from trainmark.workload import layers


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A backend with a mistake, and the workloads on which it shows."""

    backend: Callable[[], Any]
    workloads: tuple[str, ...]


def changed(change: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return a backend that trains another workload than it is asked to."""

    class Changed(TorchBackend):
        def trainer(self, workload: Any, model: Any, data: Any, options: Any) -> Any:
            return super().trainer(change(workload), model, data, options)

    return Changed


def trained_by(kind: type[fast.TorchFastTrainer]) -> Callable[[], Any]:
    """Return a backend with another trainer."""

    class Trained(TorchBackend):
        def trainer(self, workload: Any, model: Any, data: Any, options: Any) -> Any:
            return kind(Job(workload, model, data, options))

    return Trained


def of_input(**changes: Any) -> Callable[[Any], Any]:
    """Change the input."""
    return lambda workload: dataclasses.replace(
        workload, input=dataclasses.replace(workload.input, **changes)
    )


def of_optimizer(change: Callable[[Any], dict[str, Any]]) -> Callable[[Any], Any]:
    """Change the optimiser."""
    return lambda workload: dataclasses.replace(
        workload, optimizer=dataclasses.replace(workload.optimizer, **change(workload.optimizer))
    )


class Own(torch.optim.Optimizer):
    """An optimiser written out, with the names of PyTorch's state."""

    def __init__(self, spec: Any, parameters: Any) -> None:
        super().__init__(parameters, {"lr": spec.learning_rate})
        self.spec = spec

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # noqa: ARG002
        """Apply one update."""
        for weight in self.param_groups[0]["params"]:
            state = self.state[weight]
            state.setdefault("step", torch.zeros(())).add_(1)
            self.move(weight, weight.grad, state)

    def move(self, weight: Any, gradient: Any, state: Any) -> None:
        """Move one weight."""
        raise NotImplementedError

    def moments(self, weight: Any, gradient: Any, state: Any) -> tuple[Any, Any]:
        """Update Adam's moments."""
        mean = state.setdefault("exp_avg", torch.zeros_like(weight))
        square = state.setdefault("exp_avg_sq", torch.zeros_like(weight))
        mean.mul_(self.spec.beta1).add_(gradient, alpha=1 - self.spec.beta1)
        square.mul_(self.spec.beta2).addcmul_(gradient, gradient, value=1 - self.spec.beta2)
        return mean, square


class RootOfSum(Own):
    """RMSprop or Adam that divides by the root of the moment plus epsilon."""

    def move(self, weight: Any, gradient: Any, state: Any) -> None:
        """Move one weight."""
        spec = self.spec
        if spec.kind == "adam":
            mean, square = self.moments(weight, gradient, state)
            count = float(state["step"])
            mean = mean / (1 - spec.beta1**count)
            square = square / (1 - spec.beta2**count)
        else:
            square = state.setdefault("square_avg", torch.zeros_like(weight))
            square.mul_(spec.rho).addcmul_(gradient, gradient, value=1 - spec.rho)
            mean = gradient
        weight.sub_(spec.learning_rate * mean / (square + spec.epsilon).sqrt())


class Uncorrected(Own):
    """Adam without bias correction."""

    def move(self, weight: Any, gradient: Any, state: Any) -> None:
        """Move one weight."""
        mean, square = self.moments(weight, gradient, state)
        weight.sub_(self.spec.learning_rate * mean / (square.sqrt() + self.spec.epsilon))


def optimized_by(kind: type[Own]) -> type[fast.TorchFastTrainer]:
    """Return a trainer with another optimiser."""

    class Trainer(fast.TorchFastTrainer):
        def _make(self, job: Job) -> None:
            super()._make(job)
            self._optimizer = kind(job.workload.optimizer, list(self._network.parameters()))

    return Trainer


class Transposed(fast.TorchFastTrainer):
    """Reads and writes the square kernel of the second dense layer transposed."""

    def load(self, weights: Any) -> None:
        """Set the weights."""
        super().load(_turned(weights))

    def set_state(self, state: State) -> None:
        """Set the state; the weights pass through ``load``."""
        slots = {slot: _turned(arrays) for slot, arrays in state.slots.items()}
        super().set_state(dataclasses.replace(state, slots=slots))

    def state(self) -> State:
        """Read the state."""
        found = super().state()
        slots = {slot: _turned(arrays) for slot, arrays in found.slots.items()}
        return dataclasses.replace(found, weights=_turned(found.weights), slots=slots)

    def gradients(self) -> Any:
        """Read the gradients."""
        return _turned(super().gradients())


def _turned(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.T.copy() if name == "dense2.kernel" else value for name, value in arrays.items()
    }


class LastTwice(fast.TorchFastTrainer):
    """Takes the last batch of an epoch twice."""

    def _step_on(self, x: Any, y: Any, row: Any) -> None:
        super()._step_on(x, y, row)
        if self._steps_of_epoch + 1 == len(self._plan.sizes):
            super()._step_on(x, y, row)
            self._step += 1


class Unscaled(fast.TorchFastTrainer):
    """Drops without scaling the rest."""

    def _make(self, job: Job) -> None:
        for name, module in list(self._network.named_children()):
            if isinstance(module, (nn.Dropout, nn.Dropout2d)):
                self._network.register_module(name, nn.Sequential(module, Times(1 - module.p)))
        super()._make(job)


class Times(nn.Module):
    """Multiplies in training."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Any) -> Any:
        """Multiply."""
        return x * self.factor if self.training else x


class OtherSide(TorchBackend):
    """Pads SAME with the odd row before instead of after."""

    def trainer(self, workload: Any, model: Any, data: Any, options: Any) -> Any:
        """Return a trainer whose network is built with the other padding."""
        usual = layers.padding_of
        with patch.object(layers, "padding_of", lambda *known: tuple(reversed(usual(*known)))):
            return super().trainer(workload, model, data, options)


MISTAKES = {
    "pixels / 256": Mistake(changed(of_input(divide_by=256)), ("mnist-mlp512", "mnist-cnn")),
    "rate 1 % too high": Mistake(
        changed(of_optimizer(lambda of: {"learning_rate": 1.01 * of.learning_rate})),
        ("mnist-mlp32", "mnist-mlp128", "mnist-mlp512", "mnist-cnn"),
    ),
    "rate 0.1 % too high": Mistake(
        changed(of_optimizer(lambda of: {"learning_rate": 1.001 * of.learning_rate})),
        ("mnist-mlp32", "mnist-mlp128", "mnist-mlp512", "mnist-cnn"),
    ),
    "epsilon inside the root": Mistake(
        trained_by(optimized_by(RootOfSum)), ("mnist-mlp32", "mnist-mlp512")
    ),
    "no bias correction": Mistake(trained_by(optimized_by(Uncorrected)), ("mnist-mlp32",)),
    "other form of momentum": Mistake(
        changed(
            of_optimizer(
                lambda of: {
                    "momentum_form": "velocity" if of.momentum_form == "buffer" else "buffer"
                }
            )
        ),
        ("mnist-mlp128", "mnist-cnn"),
    ),
    "biases not decayed": Mistake(
        changed(of_optimizer(lambda _: {"decay_biases": False})), ("mnist-mlp128",)
    ),
    "biases decayed": Mistake(
        changed(of_optimizer(lambda _: {"decay_biases": True})), ("mnist-mlp128:undecayed",)
    ),
    "square kernel transposed": Mistake(trained_by(Transposed), ("mnist-mlp512",)),
    "last batch twice": Mistake(trained_by(LastTwice), ("mnist-mlp128", "mnist-mlp512")),
    "dropout not scaled": Mistake(trained_by(Unscaled), ("mnist-mlp512", "mnist-cnn")),
    "padding on the other side": Mistake(OtherSide, ("cifar10-cnn:16",)),
}
