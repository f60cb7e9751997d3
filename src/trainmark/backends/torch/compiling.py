"""``torch.compile`` as the styles use it: whole functions, and as many as a process needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from trainmark.backends.inductor import require_compiler
from trainmark.workload.layers import Attention, ChannelDropout, Dropout, every
from trainmark.workload.spec import Workload

_F = TypeVar("_F", bound=Callable[..., Any])

_FUSED_MASKS_ARE_WRONG_SINCE = (2, 13)
"""First PyTorch whose compiled CUDA kernels draw four random numbers at a time. They assume that
the numbers are consecutive. If they are not, masks repeat, and a backward pass that draws them
again gets different ones, without an error (https://github.com/pytorch/pytorch/issues/198333, open
on 2026-11-27)."""


def compiled(function: _F, device: torch.device, **options: Any) -> _F:
    """Return ``function`` compiled as one graph.

    Raises NotInstalled if the compiler that PyTorch calls is missing.

    Args:
        device: where it will run.
        options: arguments of ``torch.compile``.
    """
    require_compiler(str(device))
    import torch._dynamo

    # After 8 networks in one process, PyTorch continues without compiling; with fullgraph that is
    # an error.
    config = torch._dynamo.config
    # The limit has its other name up to PyTorch 2.6.
    limit = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    setattr(config, limit, getattr(config, f"accumulated_{limit}"))
    made: _F = torch.compile(function, fullgraph=True, **options)
    return made


def random_options(workload: Workload) -> dict[str, Any]:
    """Return the compiler's options for networks with dropout.

    By default, compiled code draws a seed in each call with ``aten.randint``, and makes masks from
    it. In a CUDA graph this operation takes its offset from the device, so that each replay draws
    other seeds, hence other masks. If these masks can't be trusted, ``fallback_random`` calls the
    kernels of eager PyTorch instead. Their generator keeps its offset on the device, too, so masks
    also differ in each replay; the rest of the step stays fused.
    """
    drops = any(
        (isinstance(layer, (Dropout, ChannelDropout)) and layer.rate > 0)
        or (isinstance(layer, Attention) and layer.dropout > 0)
        for layer in every(workload.model)
    )
    falls_back = drops and torch.__version__ >= _FUSED_MASKS_ARE_WRONG_SINCE
    return {"options": {"fallback_random": True}} if falls_back else {}


def cache_state() -> str:
    """Return whether PyTorch's cache on disk was ``warm`` or ``cold``.

    It was warm if it held everything that this process compiled.
    """
    import torch._dynamo.utils

    counters = torch._dynamo.utils.counters
    missed = (
        counters["inductor"]["fxgraph_cache_miss"] + counters["inductor"]["fxgraph_cache_bypass"]
    )
    return "cold" if missed or not counters["inductor"]["fxgraph_cache_hit"] else "warm"
