"""The specified optimisers as ``torch.optim`` has them, and the one form of momentum that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from trainmark.workload.optimizers import SGD, Adam, Optimizer, RMSprop


def build(spec: Optimizer, network: nn.Module, *, fused: bool, capturable: bool) -> torch.optim.Optimizer:
    """The optimiser of ``spec`` for the parameters of ``network``.

    Args:
        fused: one kernel for all parameters where PyTorch has one, instead of its default.
        capturable: keep all state on the device, so that a step can be captured in a CUDA graph.
    """
    if isinstance(spec, SGD):
        if spec.momentum_form == "velocity" and spec.staircase:
            return VelocitySGD(_groups(spec, network), spec.learning_rate, spec.momentum)
        # With a constant rate the velocity is the buffer times -rate, so both forms are this one.
        return torch.optim.SGD(
            _groups(spec, network), lr=spec.learning_rate, momentum=spec.momentum, fused=True if fused else None
        )
    if isinstance(spec, Adam):
        return torch.optim.Adam(
            network.parameters(),
            lr=spec.learning_rate,
            betas=(spec.beta1, spec.beta2),
            eps=spec.epsilon,
            fused=True if fused else None,
            capturable=capturable,
        )
    if fused:
        return FusedRMSprop(network.parameters(), spec)
    return torch.optim.RMSprop(
        network.parameters(), lr=spec.learning_rate, alpha=spec.rho, eps=spec.epsilon, capturable=capturable
    )


def reset(optimizer: torch.optim.Optimizer) -> None:
    """State as of a new optimiser, in place, so that a captured step still finds it."""
    if isinstance(optimizer, FusedRMSprop):
        optimizer.reset()
        return
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                value.zero_()


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The rate of all parameter groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def _groups(spec: SGD, network: nn.Module) -> list[dict[str, Any]]:
    named = list(network.named_parameters())
    if not spec.weight_decay or spec.decay_biases:
        return [{"params": [value for _, value in named], "weight_decay": spec.weight_decay}]
    return [
        {"params": [v for name, v in named if not name.endswith("bias")], "weight_decay": spec.weight_decay},
        {"params": [v for name, v in named if name.endswith("bias")], "weight_decay": 0.0},
    ]


class FusedRMSprop(torch.optim.Adam):
    """RMSprop in one kernel, which PyTorch has for Adam alone.

    RMSprop is Adam with β1 = 0 that began so long ago that no bias is left to correct: ``1 - ρᵗ`` is 1.
    """

    _LONG_AGO = 2.0**24  # float32 counts no further, so it stays

    def __init__(self, parameters: Iterable[nn.Parameter], spec: RMSprop) -> None:
        super().__init__(parameters, lr=spec.learning_rate, betas=(0.0, spec.rho), eps=spec.epsilon, fused=True)
        self.reset()

    def reset(self) -> None:
        """State as at the start."""
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state["step"] = torch.zeros((), dtype=torch.float32, device=weight.device)
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
                state["step"].fill_(self._LONG_AGO)
                state["exp_avg"].zero_()
                state["exp_avg_sq"].zero_()


class VelocitySGD(torch.optim.Optimizer):
    """``v ← μ·v - lr·g; w ← w + v``: the momentum that remembers the learning rate of each step."""

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, momentum: float) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # noqa: ARG002
        """One update."""
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state["velocity"] = torch.zeros_like(weight)
                velocity = state["velocity"]
                gradient = weight.grad.add(weight, alpha=group["weight_decay"])
                velocity.mul_(group["momentum"]).sub_(gradient, alpha=group["lr"])
                weight.add_(velocity)
