"""Switches and calls that cost time in each step, turned off."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils import checkpoint

from ...patch import around
from .. import Change, profilers


def no_anomaly(change: Change) -> None:
    """Keep anomaly detection off."""
    set_enabled = torch.set_anomaly_enabled
    asked = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()

    def asks(_: Callable[..., Any], _mode: bool, check_nan: bool = True) -> None:
        nonlocal asked
        asked = _mode, check_nan
        (on if change.is_on else off)()

    def on() -> None:
        enabled, check_nan = asked
        if enabled:
            change.took("anomaly detection stays off")
        set_enabled(False, check_nan)

    def off() -> None:
        set_enabled(*asked)

    change.switches(on, off)
    around(torch, "set_anomaly_enabled", asks)


def no_deterministic(change: Change) -> None:
    """Allow algorithms that do not repeat themselves bit by bit."""

    def never(_: Callable[..., Any], mode: bool, **__: Any) -> None:
        if mode:
            change.took("algorithms need not be deterministic")

    around(torch, "use_deterministic_algorithms", never)


def no_checkpointing(change: Change) -> None:
    """Keep activations instead of computing them again in the backward pass."""

    def kept(_: Callable[..., Any], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        change.took("activations are kept")
        given = {name: value for name, value in kwargs.items() if name not in options}
        return function(*args, **given)

    parameters = inspect.signature(checkpoint.checkpoint).parameters.values()
    options = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    options |= {"use_reentrant", "preserve_rng_state"}
    change.around(checkpoint, "checkpoint", kept)


def no_torch_profiler(change: Change) -> None:
    """Keep PyTorch's profiler off."""

    def never(_: Callable[..., Any], self: Any) -> Any:
        change.took("PyTorch's profiler stays off")
        return self

    def nothing(*_: Any) -> None:
        pass

    around(torch.profiler.profile, "start", never)
    for name in ("step", "stop"):
        around(torch.profiler.profile, name, nothing)
    around(torch.autograd.profiler.profile, "__enter__", never)
    around(torch.autograd.profiler.profile, "__exit__", nothing)


def no_python_profiler(change: Change) -> None:
    """Keep Python's profilers off."""
    profilers.keep_off(change)


def no_gc(change: Change) -> None:
    """Leave garbage to Python's own collector."""
    _do_nothing(change, gc, "collect", 0)


def no_empty_cache(change: Change) -> None:
    """Keep the memory that the framework has allocated on the GPU."""
    _do_nothing(change, torch.cuda, "empty_cache", None)


def _do_nothing(change: Change, owner: Any, name: str, result: Any) -> None:
    """Replace a function that the user's code calls during the steps."""
    has_begun = False

    def begin(*_: Any) -> None:
        nonlocal has_begun
        has_begun = True

    def nothing(real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if not has_begun:
            return real(*args, **kwargs)
        change.took(f"{name}() does nothing")
        return result

    change.around(owner, name, nothing)
    register_optimizer_step_post_hook(begin)
