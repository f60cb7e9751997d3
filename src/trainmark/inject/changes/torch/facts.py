"""Facts that the plan of the experiments depends on."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils import checkpoint
from torch.utils.data import IterableDataset, dataloader

from ... import accelerator
from ...patch import around
from .. import Change, lines, profilers
from ..calls import Calls
from ..facts import facts_of
from ..switches import Switches
from .denormal import Denormals
from .growing import Growing
from .loader import with_loader
from .loading import Loading
from .model import eager
from .optimizer import is_handwritten
from .outermost import around_modules, evaluates
from .profile import Busy, ByModule, Profile, device_time


def facts(change: Change) -> None:
    """Report the facts that the plan of the experiments depends on.

    It also reports the user's lines that take the most time.
    """
    every = facts_of(change.observer)
    found = every.found
    found.update(dict.fromkeys(("persistent", "iterable", "conv", "graded", "attention"), False))
    found["workers"] = None

    def built(arguments: dict[str, Any]) -> None:
        found["workers"] = max(found["workers"] or 0, arguments["num_workers"])
        found["persistent"] |= bool(arguments.get("persistent_workers"))
        found["iterable"] |= isinstance(arguments["dataset"], IterableDataset)

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if id(module) not in known:
            known.add(id(module))
            found["conv"] |= any(isinstance(each, torch.nn.Conv2d) for each in module.modules())
            found["attention"] |= bool(eager(module))
        found["graded"] |= not module.training and torch.is_grad_enabled()
        of_step["calls"] += not evaluates(module)
        loading.use(is_evaluated=evaluates(module))
        return inner(*args, **kwargs)

    def attends(real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        found["attention"] |= (
            inspect.signature(real).bind(*args, **kwargs).arguments.get("need_weights", True)
        )
        return real(*args, **kwargs)

    known: set[int] = set()
    of_step: Counter[Any] = Counter()
    accumulated: Counter[int] = Counter()

    switches = every.switches
    _watch(switches)
    _count(every.calls)
    loading = Loading(change.observer)
    denormals = Denormals()
    growing = Growing(change.observer.is_users)

    def differentiates(real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        of_step["backward"] += 1
        switches.look()
        return real(*args, **kwargs)

    def fetches(real: Callable[..., Any], iterator: Any) -> Any:
        of_step[id(iterator)] += not any(map(evaluates, latest))
        return loading.fetch(real, iterator)

    def loaded() -> list[lines.Loaded]:
        found["draws"] = loading.draws()
        return loading.loaded()

    profiles = _profiles(change.observer, found)

    def stepped(optimizer: Any, *_: Any) -> None:
        for profile in [each for each in profiles if not each.is_over]:
            every.inspect(profile.stepped)
        batches = {number for number in of_step.values() if number}
        accumulated[batches.pop() if len(batches) == 1 else 1] += 1
        found["accumulates"] = accumulated.most_common(1)[0][0]
        of_step.clear()
        switches.stepped()
        every.calls.stepped()
        if isinstance(optimizer, torch.optim.Optimizer) and denormals.is_due():
            every.inspect(lambda: found.update(denormal=denormals.share(optimizer)))
        if growing.stepped(sys._getframe(1)):
            found["growing"] = growing.facts()
        if "stack" not in found:
            found.update(_described(optimizer))
            found["stack"] = lines.stack(change.observer)
            every.begin(loading.is_evaluated, loaded=loaded)

    def counted(
        real: Callable[..., Any], /, leader: Any, framework: str, *args: Any, **more: Any
    ) -> None:
        real(leader, framework, *args, **more)
        # The weights may be changed without an optimiser of PyTorch.
        if framework == "torch" and not isinstance(leader, torch.optim.Optimizer):
            stepped(leader)

    with_loader(built)
    latest = around_modules(call)
    around(torch.nn.MultiheadAttention, "forward", attends)
    around(torch.Tensor, "backward", differentiates)
    around(dataloader._BaseDataLoaderIter, "__next__", fetches)
    register_optimizer_step_post_hook(stepped)
    around(change.observer, "stepped", counted)


def _profiles(observer: Any, found: dict[str, Any]) -> list[Profile]:
    """Return what is profiled of a GPU; nothing without one."""
    kind = accelerator.kind(torch)
    if kind is None:
        return []
    device = getattr(DeviceType, kind.upper())
    return [
        Busy(device, functools.partial(found.__setitem__, "busy")),
        ByModule(observer, device, functools.partial(found.__setitem__, "modules"), device_time),
    ]


def _count(calls: Calls) -> None:
    """Count the calls of functions that rarely belong into each step."""
    calls.count("collect", gc, "collect")
    calls.count("empty_cache", torch.cuda, "empty_cache")
    compiler = getattr(torch, "compiler", None)
    is_compiling = getattr(compiler, "is_compiling", bool)
    calls.count("checkpoint", checkpoint, "checkpoint", is_compiling)
    for cell in (torch.nn.RNNCell, torch.nn.LSTMCell, torch.nn.GRUCell):
        calls.count("cell", cell, "forward", is_compiling)


def _watch(switches: Switches) -> None:
    """Watch what slows a training down as long as it is on."""
    switches.watch("anomaly", torch.is_anomaly_enabled)
    switches.watch("deterministic", torch.are_deterministic_algorithms_enabled)
    switches.watch("profiler", torch.autograd._profiler_enabled)
    profilers.watch(switches)
    switches.watch("blocking", lambda: os.environ.get("CUDA_LAUNCH_BLOCKING") == "1")
    switches.set_by("anomaly", torch.autograd.set_detect_anomaly, "__init__")
    switches.set_by("anomaly", torch.autograd.detect_anomaly, "__enter__")
    switches.set_by("profiler", torch.profiler.profile, "start")
    switches.set_by("profiler", torch.autograd.profiler.profile, "__enter__")
    switches.set_by("deterministic", torch, "use_deterministic_algorithms")


def _described(optimizer: Any) -> dict[str, Any]:
    """Return what is known of an optimiser; nothing if it is not one of PyTorch."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        return {}
    group = optimizer.param_groups[0]
    flags = {flag: group[flag] for flag in ("fused", "foreach") if flag in group}
    name = type(optimizer).__name__
    return {"optimizer": name, "handwritten": is_handwritten(optimizer), **flags}
