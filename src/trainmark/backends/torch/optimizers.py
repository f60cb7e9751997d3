"""The optimisers from ``torch.optim``, and the one form of momentum that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from trainmark.errors import assert_never
from trainmark.workload.optimizers import SGD, Adam, Optimizer, RMSprop


def build(spec: Optimizer, network: nn.Module, *, quick: bool, capturable: bool) -> torch.optim.Optimizer:
    """Build the optimiser of ``spec`` for the parameters of ``network``.

    Args:
        quick: whether to use PyTorch's fused kernel, or ``foreach`` if there is none, instead of its default.
        capturable: whether to keep all state on the device, so that a step can be captured in a CUDA graph.
    """
    weights, rate, fused = network.parameters(), spec.learning_rate, True if quick else None
    match spec:
        case SGD():
            groups = _groups(spec, network)
            if spec.momentum_form == "velocity" and spec.staircase:
                return VelocitySGD(groups, rate, spec.momentum)
            # With a constant rate, the velocity is the buffer times -rate, so both forms are this one.
            return torch.optim.SGD(groups, rate, momentum=spec.momentum, fused=fused)
        case Adam():
            betas = spec.beta1, spec.beta2
            return torch.optim.Adam(weights, rate, betas, spec.epsilon, fused=fused, capturable=capturable)
        case RMSprop():
            return torch.optim.RMSprop(weights, rate, spec.rho, spec.epsilon, foreach=fused, capturable=capturable)
        case _:
            assert_never(spec)


def reset(optimizer: torch.optim.Optimizer) -> None:
    """Reset the state to that of a new optimiser, in place, so that captured steps stay valid."""
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                value.zero_()


def buffer(optimizer: torch.optim.Optimizer, spec: Optimizer, slot: str, parameter: nn.Parameter) -> Tensor:
    """Return PyTorch's buffer for a slot of a parameter, which is zero before the first step."""
    match spec:
        case SGD():
            key = "velocity" if isinstance(optimizer, VelocitySGD) else "momentum_buffer"
        case Adam():
            key = {"mean": "exp_avg", "square": "exp_avg_sq"}[slot]
        case RMSprop():
            key = "square_avg"
        case _:
            assert_never(spec)
    found: Tensor = optimizer.state[parameter].setdefault(key, torch.zeros_like(parameter))
    _count(optimizer, parameter)
    return found


def scale_of(spec: Optimizer, slot: str) -> float:
    """Return the slot as a multiple of PyTorch's buffer: with a constant rate, the velocity is ``-rate`` times it."""
    velocity = isinstance(spec, SGD) and spec.momentum_form == "velocity" and spec.staircase is None
    return -spec.learning_rate if velocity and slot == "momentum" else 1.0


def set_step(optimizer: torch.optim.Optimizer, step: int) -> None:
    """Set the number of updates so far, of optimisers that have state."""
    for parameter in optimizer.state:
        _count(optimizer, parameter).fill_(step)


def _count(optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor:
    """Return PyTorch's count of updates, which an optimiser expects wherever there is other state."""
    on_device = optimizer.defaults.get("fused") or optimizer.defaults.get("capturable")
    zero = torch.zeros((), device=parameter.device if on_device else "cpu")
    count: Tensor = optimizer.state[parameter].setdefault("step", zero)
    return count


def _groups(spec: SGD, network: nn.Module) -> list[dict[str, Any]]:
    named = list(network.named_parameters())
    if not spec.weight_decay or spec.decay_biases:
        return [{"params": [value for _, value in named], "weight_decay": spec.weight_decay}]
    return [
        {"params": [v for name, v in named if not name.endswith("bias")], "weight_decay": spec.weight_decay},
        {"params": [v for name, v in named if name.endswith("bias")], "weight_decay": 0.0},
    ]


class VelocitySGD(torch.optim.Optimizer):
    """``v ← μ·v - lr·g; w ← w + v``: momentum that includes the learning rate of each step."""

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, momentum: float) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # noqa: ARG002
        """Apply one update."""
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state["velocity"] = torch.zeros_like(weight)
                velocity = state["velocity"]
                gradient = weight.grad.add(weight, alpha=group["weight_decay"])
                velocity.mul_(group["momentum"]).sub_(gradient, alpha=group["lr"])
                weight.add_(velocity)
