"""What a training does between its steps: it reads results, evaluates and saves."""

from __future__ import annotations

import copy
import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader

from ...patch import around
from .. import OLD_VALUES_AT, Change
from ..reported import Reported
from .outermost import around_modules, evaluates, tensors

_MOST_PLACES = 10
"""Most lines that the proof of a change names."""


def no_sync(change: Change) -> None:
    """Give the user's lines that only report a result what their first call returned."""
    results: dict[Any, Any] = {}
    stale_places: dict[str, None] = {}
    reported = Reported()

    def stale(name: str, real: Callable[..., Any], self: Any, /, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(2)
        if (name == "cpu" and self.device.type == "cpu") or not change.observer.is_users(frame):
            return real(self, *args, **kwargs)
        if not reported.is_only_reported(frame, name):
            place = functools.partial(change.observer.users_place, frame)
            change.keeps(lambda: f"the script computes with what {place()} reads")
            return real(self, *args, **kwargs)
        key = frame.f_code, frame.f_lasti, name, self.shape if self.ndim else ()
        if key not in results:
            results[key] = real(self, *args, **kwargs)
            # Python may specialise the same call, which is then at another instruction.
            stale_places[change.observer.users_place(frame)] = None
            change.proves(OLD_VALUES_AT + "; ".join(list(stale_places)[:_MOST_PLACES]))
        # The script may change a list or a tensor that it was given.
        return copy.deepcopy(results[key])

    for name in ("item", "__float__", "__int__", "tolist", "cpu"):
        change.around(torch.Tensor, name, functools.partial(stale, name))


def no_evaluation(change: Change) -> None:
    """End loaders after a batch while the model evaluates.

    The model repeats its first output.
    """
    outputs: dict[Any, Any] = {}

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if not evaluates(module):
            return inner(*args, **kwargs)
        key = id(module), str([tuple(each.shape) for each in tensors((args, kwargs))])
        if key in outputs:
            change.took("the model repeats its first output")
        else:
            outputs[key] = inner(*args, **kwargs)
        return outputs[key]

    def first(real: Callable[..., Any], self: Any) -> Any:
        if not any(map(evaluates, latest)):
            return real(self)
        change.took("loaders end after a batch")
        return itertools.islice(real(self), 1)

    latest = around_modules(call)
    around(DataLoader, "__iter__", first)


def no_grad(change: Change) -> None:
    """Evaluate without recording gradients."""

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if module.training or not torch.is_grad_enabled():
            return inner(*args, **kwargs)
        change.took(f"{type(module).__name__} evaluates without gradients")
        with torch.no_grad():
            return inner(*args, **kwargs)

    around_modules(call)


def no_saves(change: Change) -> None:
    """Save nothing."""
    around(torch, "save", change.nothing)
    for module, names in (
        ("numpy", ("save", "savez", "savez_compressed")),
        ("safetensors.torch", ("save_file",)),
    ):
        for name in names:
            if hasattr(sys.modules.get(module), name):
                around(sys.modules[module], name, change.nothing)
