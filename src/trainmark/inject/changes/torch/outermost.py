"""The outermost modules of a training, and the tensors that they get."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...patch import around
from .. import Change


def mapped(by: Callable[[Any], Any], value: Any) -> Any:
    """Replace the tensors in nested containers."""
    if isinstance(value, torch.Tensor):
        return by(value)
    return pytree.tree_map_only(torch.Tensor, by, value)


def around_modules(
    call: Callable[[Any, Callable[..., Any], Any, Any], Any],
    *,
    losses: bool = False,
    change: Change | None = None,
) -> list[Any]:
    """Call ``call`` around every module that no other module calls.

    Returns a list with the latest of them that trains.

    Args:
        losses: include modules without weights, such as losses.
        change: call it only while this is on; always by default.
    """
    latest: list[Any] = []
    inside = threading.local()

    def outer(real: Callable[..., Any], module: Any, /, *args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "one", 0) or not (
            losses or module in latest or next(module.parameters(), None) is not None
        ):
            return real(module, *args, **kwargs)
        if module.training or not latest:  # a frozen network may follow in each step
            latest[:] = [module]
        inside.one = True
        try:
            if change is not None and not change.is_on:
                return real(module, *args, **kwargs)
            return call(module, functools.partial(real, module), args, kwargs)
        finally:
            inside.one = False

    around(torch.nn.Module, "__call__", outer)
    return latest


def evaluates(module: Any) -> bool:
    """Return whether a module that is called now doesn't train."""
    return not module.training or not torch.is_grad_enabled()


def tensors(value: Any) -> list[Any]:
    """Return the tensors in nested containers."""
    return [each for each in pytree.tree_flatten(value)[0] if isinstance(each, torch.Tensor)]
