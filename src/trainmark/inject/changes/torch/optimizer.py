"""Other implementations of the optimiser."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode

from ... import patch
from ...identity import Identities
from ...patch import around
from .. import Change
from .outermost import tensors


def fused(change: Change) -> None:
    """Use another implementation of PyTorch's own optimisers."""
    flag = change.name
    other = {"fused": "foreach", "foreach": "fused"}[flag]
    changed = Identities()
    before: list[tuple[Any, list[dict[str, Any]]]] = []

    def off() -> None:
        for optimizer, groups in before:
            for group, flags in zip(optimizer.param_groups, groups):  # noqa: B905  (Python 3.8)
                group.update(flags)
            _keep_steps_where(optimizer, is_fused=bool(groups[0].get("fused")))
        before.clear()
        changed.clear()

    def step(real: Callable[..., Any], self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not change.is_on:
            return real(self, *args, **kwargs)
        if flag not in self.param_groups[0]:
            if not any(flag in each.param_groups[0] for each in optimizers):
                change.cannot(f"{type(self).__name__} has no {flag} implementation")
            return real(self, *args, **kwargs)
        if self not in changed:
            changed.add(self)
            flags = [
                {name: group[name] for name in (flag, other) if name in group}
                for group in self.param_groups
            ]
            before.append((self, flags))
            for group in self.param_groups:
                group[flag] = True
                if other in group:
                    group[other] = False
            _keep_steps_where(self, is_fused=flag == "fused")
        if change.done:
            return real(self, *args, **kwargs)
        with _Calls() as calls:
            out = real(self, *args, **kwargs)
        for name in calls.names:
            if name.startswith(f"aten._{flag}_"):
                change.took(f"{type(self).__name__} calls {name}")
        return out

    optimizers = _around_steps(step)
    change.switches(changed.clear, off)


foreach = fused


def _keep_steps_where(optimizer: Any, *, is_fused: bool) -> None:
    """Move step counters to the weights' device if an optimiser is fused, else to the CPU."""
    if optimizer.param_groups[0].get("capturable"):  # they are always next to the weights
        return
    for weight, state in optimizer.state.items():
        number = state.get("step")
        if isinstance(number, torch.Tensor):
            state["step"] = number.to(weight.device if is_fused else "cpu")


class _Calls(TorchDispatchMode):  # type: ignore[misc]
    """Keeps the names of the functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def torch_optimizer(change: Change) -> None:
    """Use PyTorch's fused optimiser with as much state instead of one written by hand."""
    instead: dict[int, Any] = {}

    def step(real: Callable[..., Any], self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not is_handwritten(self):
            change.cannot(f"{type(self).__name__} is a PyTorch optimiser")
            return real(self, *args, **kwargs)
        if id(self) not in instead:
            out = real(self, *args, **kwargs)  # it creates its state
            instead[id(self)] = _like(self)
            change.took(f"{type(instead[id(self)]).__name__} replaces {type(self).__name__}")
            return out
        other = instead[id(self)]
        for own, theirs in zip(other.param_groups, self.param_groups):  # noqa: B905  (Python 3.8)
            own["lr"] = theirs.get("lr", own["lr"])
        # The hooks of the other optimiser are left out, since this is still one step.
        return type(other).step.__wrapped__(other, *args, **kwargs)

    _around_steps(step)


def is_handwritten(optimizer: Any) -> bool:
    """Return whether an optimiser is neither PyTorch's nor derived from one that is fused."""
    fused = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
    return not (type(optimizer).__module__.startswith("torch.") or isinstance(optimizer, fused))


def _like(optimizer: Any) -> Any:
    """Return PyTorch's fused optimiser with as many numbers of state per weight."""
    groups = [
        {"params": group["params"], "lr": group.get("lr", 1e-3)} for group in optimizer.param_groups
    ]
    parameters: list[Any] = []
    for group in optimizer.param_groups:
        parameters += group["params"]
    weights = sum(each.numel() for each in parameters)
    known = {id(each) for each in parameters}
    own = {
        name: value
        for name, value in vars(optimizer).items()
        if name not in ("param_groups", "defaults")
    }
    held = {id(each): each.numel() for each in tensors(own) if id(each) not in known}
    moments = round(sum(held.values()) / weights)
    if moments > 1:
        return torch.optim.Adam(groups, fused=True)
    return torch.optim.SGD(groups, lr=1e-3, momentum=0.9 if moments else 0.0, fused=True)


def _around_steps(step: Callable[..., Any]) -> Any:
    """Call ``step`` around the step of every optimiser, inside of its hooks.

    Returns the set of optimisers.
    """
    optimizers = Identities()

    def built(real: Callable[..., Any], self: Any, /, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        optimizers.add(self)
        kind = type(self)
        inner = getattr(kind.step, "__wrapped__", kind.step)
        steps = getattr(inner, "of_trainmark", ())
        if step not in steps:
            mine = functools.wraps(inner)(functools.partial(step, inner))
            mine.of_trainmark = (*steps, step)  # type: ignore[attr-defined]
            hooked = Optimizer.profile_hook_step(mine)
            hooked.hooked = True
            patch.put(kind, "step", hooked)

    around(Optimizer, "__init__", built)
    return optimizers
