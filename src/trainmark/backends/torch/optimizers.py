"""The optimisers from ``torch.optim``, and the one form of momentum that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from trainmark.errors import assert_never
from trainmark.workload.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop


def build(
    spec: Optimizer,
    network: nn.Module,
    *,
    decays: Mapping[nn.Parameter, float],
    quick: bool,
    capturable: bool,
) -> torch.optim.Optimizer:
    """Build the optimiser of ``spec`` for the parameters of ``network``.

    Args:
        decays: weight decay of each parameter.
        quick: whether to use PyTorch's fused kernel, or ``foreach`` if there is none, instead of
            its default.
        capturable: whether to keep all state on the device, so that a step can be captured in a
            CUDA graph.
    """
    groups = _groups(network, decays)
    fused = True if quick else None
    rate: float | Tensor = spec.learning_rate
    if capturable and not _is_constant(spec):  # captured steps read the rate from the device
        rate = torch.tensor(rate, device=next(network.parameters()).device)
    match spec:
        case SGD():
            if spec.momentum_form == "velocity" and not _is_constant(spec):
                return VelocitySGD(groups, rate, spec.momentum, nesterov=spec.nesterov)
            # With a constant rate, the velocity is the buffer times -rate, so both forms are this
            # one.
            return torch.optim.SGD(
                groups, rate, momentum=spec.momentum, nesterov=spec.nesterov, fused=fused
            )
        case Adam() | AdamW():
            kind = torch.optim.Adam if isinstance(spec, Adam) else torch.optim.AdamW
            betas = spec.beta1, spec.beta2
            return kind(groups, rate, betas, spec.epsilon, fused=fused, capturable=capturable)
        case RMSprop():
            return torch.optim.RMSprop(
                groups, rate, spec.rho, spec.epsilon, foreach=fused, capturable=capturable
            )
        case _:
            assert_never(spec)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step, in place if it is on the device."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def reset(optimizer: torch.optim.Optimizer) -> None:
    """Reset the state to that of a new optimiser, in place, so that captured steps stay valid."""
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                value.zero_()


def buffer(
    optimizer: torch.optim.Optimizer, spec: Optimizer, slot: str, parameter: nn.Parameter
) -> Tensor:
    """Return PyTorch's buffer for a slot of a parameter, which is zero before the first step."""
    match spec:
        case SGD():
            key = "velocity" if isinstance(optimizer, VelocitySGD) else "momentum_buffer"
        case Adam() | AdamW():
            key = {"mean": "exp_avg", "square": "exp_avg_sq"}[slot]
        case RMSprop():
            key = "square_avg"
        case _:
            assert_never(spec)
    found: Tensor = optimizer.state[parameter].setdefault(key, torch.zeros_like(parameter))
    _count(optimizer, parameter)
    return found


def scale_of(spec: Optimizer, slot: str) -> float:
    """Return the slot as a multiple of PyTorch's buffer.

    With a constant rate, the velocity is ``-rate`` times it.
    """
    velocity = isinstance(spec, SGD) and spec.momentum_form == "velocity" and _is_constant(spec)
    return -spec.learning_rate if velocity and slot == "momentum" else 1.0


def _is_constant(spec: Optimizer) -> bool:
    return spec.staircase is None and spec.lr_schedule is None


def set_step(optimizer: torch.optim.Optimizer, step: int) -> None:
    """Set the number of updates so far, of optimisers that have state."""
    for parameter in optimizer.state:
        _count(optimizer, parameter).fill_(step)


def _count(optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor:
    """Return PyTorch's count of updates.

    An optimiser expects it wherever there is other state.
    """
    on_device = optimizer.defaults.get("fused") or optimizer.defaults.get("capturable")
    zero = torch.zeros((), device=parameter.device if on_device else "cpu")
    count: Tensor = optimizer.state[parameter].setdefault("step", zero)
    return count


def _groups(network: nn.Module, decays: Mapping[nn.Parameter, float]) -> list[dict[str, Any]]:
    groups: dict[float, list[nn.Parameter]] = {}
    for parameter in network.parameters():
        groups.setdefault(decays[parameter], []).append(parameter)
    return [{"params": members, "weight_decay": decay} for decay, members in groups.items()]


class VelocitySGD(torch.optim.Optimizer):
    """``v ← μ·v - lr·g; w ← w + v``: momentum that includes the learning rate of each step.

    With Nesterov momentum ``w ← w - lr·g + μ·v``.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: float | Tensor,
        momentum: float,
        *,
        nesterov: bool = False,
    ) -> None:
        super().__init__(
            groups, {"lr": lr, "momentum": momentum, "weight_decay": 0.0, "nesterov": nesterov}
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # noqa: ARG002
        """Apply one update."""
        for group in self.param_groups:
            momentum = group["momentum"]
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state["velocity"] = torch.zeros_like(weight)
                velocity = state["velocity"]
                move = weight.grad.add(weight, alpha=group["weight_decay"]).mul_(group["lr"])
                velocity.mul_(momentum).sub_(move)
                if group["nesterov"]:
                    weight.sub_(move).add_(velocity, alpha=momentum)
                else:
                    weight.add_(velocity)
