"""Facts that the plan of the experiments depends on."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import IterableDataset, dataloader

from ... import accelerator
from ...patch import around
from .. import Change, lines
from ..busy import Busy
from .loader import with_loader
from .model import eager
from .optimizer import is_handwritten
from .outermost import around_modules, evaluates


def facts(change: Change) -> None:
    """Report the facts that the plan of the experiments depends on.

    It also reports the user's lines that take the most time.
    """
    found: dict[str, Any] = {
        "workers": None,
        "iterable": False,
        "conv": False,
        "graded": False,
        "attention": False,
    }

    def built(arguments: dict[str, Any]) -> None:
        found["workers"] = max(found["workers"] or 0, arguments["num_workers"])
        found["iterable"] |= isinstance(arguments["dataset"], IterableDataset)

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if id(module) not in known:
            known.add(id(module))
            found["conv"] |= any(isinstance(each, torch.nn.Conv2d) for each in module.modules())
            found["attention"] |= bool(eager(module))
        found["graded"] |= not module.training and torch.is_grad_enabled()
        of_step["calls"] += not evaluates(module)
        return inner(*args, **kwargs)

    def attends(real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        found["attention"] |= (
            inspect.signature(real).bind(*args, **kwargs).arguments.get("need_weights", True)
        )
        return real(*args, **kwargs)

    known: set[int] = set()
    of_step: Counter[Any] = Counter()
    accumulated: Counter[int] = Counter()

    def differentiates(real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        of_step["backward"] += 1
        return real(*args, **kwargs)

    def fetches(real: Callable[..., Any], iterator: Any) -> Any:
        of_step[id(iterator)] += not any(map(evaluates, latest))
        return real(iterator)

    def on_sampled(sampled: dict[str, Any]) -> None:
        change.observer.changed("facts", json.dumps({**found, **sampled}))

    def keep_busy(share: float) -> None:
        found["busy"] = share

    kind = accelerator.kind(torch)
    busy = Busy(getattr(DeviceType, kind.upper()), keep_busy) if kind else None

    def stepped(optimizer: Any, *_: Any) -> None:
        if busy is not None:
            busy.stepped()
        batches = {number for number in of_step.values() if number}
        accumulated[batches.pop() if len(batches) == 1 else 1] += 1
        found["accumulates"] = accumulated.most_common(1)[0][0]
        of_step.clear()
        if "stack" not in found:
            found.update(_described(optimizer))
            found["stack"] = lines.stack(change.observer)
            lines.sample(change.observer, on_sampled)

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


def _described(optimizer: Any) -> dict[str, Any]:
    """Return what is known of an optimiser; nothing if it is not one of PyTorch."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        return {}
    group = optimizer.param_groups[0]
    flags = {flag: group[flag] for flag in ("fused", "foreach") if flag in group}
    name = type(optimizer).__name__
    return {"optimizer": name, "handwritten": is_handwritten(optimizer), **flags}
