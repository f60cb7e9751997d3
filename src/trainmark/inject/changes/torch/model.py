"""Changes to how the model computes.

These are threads, number formats, memory format, compilation and attention.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from ... import accelerator
from ...patch import around
from .. import Change
from .outermost import around_modules, mapped, tensors


def threads(change: Change) -> None:
    """Compute with this number of CPU threads, whatever the script sets."""
    number = int(change.value)
    process = os.getpid()
    if number > len(os.sched_getaffinity(0)):
        return change.cannot(f"fewer than {number} cores are available")

    def keep(real: Callable[..., Any], asked: int) -> None:
        if os.getpid() != process:  # a loader's process
            real(asked)

    def inspect(*_: Any) -> None:
        if torch.get_num_threads() == number:
            change.took(f"PyTorch uses {number} threads")

    set_number = torch.set_num_threads
    before = torch.get_num_threads()

    def on() -> None:
        nonlocal before
        before = torch.get_num_threads()
        set_number(number)

    def off() -> None:
        set_number(before)

    change.switches(on, off)
    change.around(torch, "set_num_threads", keep)
    register_optimizer_step_post_hook(inspect)


def fp32(change: Change) -> None:
    """Compute in single precision instead of double."""

    def single(value: Any) -> Any:
        return value.float() if value.dtype is torch.float64 else value

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        every = itertools.chain(module.parameters(), module.buffers())
        if any(each.dtype is torch.float64 for each in every):
            module.float()
        out = inner(*mapped(single, args), **mapped(single, kwargs))
        if any(each.dtype is torch.float32 for each in tensors(out)):
            change.took("the model computes in fp32")
        return out

    def default(real: Callable[..., Any], dtype: Any) -> None:
        real(torch.float32 if dtype in (torch.float64, torch.DoubleTensor) else dtype)

    def stay_single(_: Callable[..., Any], module: Any) -> Any:
        return module.float()

    around(torch, "set_default_dtype", default)
    around(torch.nn.Module, "double", stay_single)
    around_modules(call, losses=True)


def tf32(change: Change) -> None:
    """Let the GPU round the inputs of matrix products to TF32."""
    if not accelerator.has_tf32(torch):
        return change.cannot("no GPU with TF32")

    def inspect(*_: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the script has set it in PyTorch's new way
            if torch.backends.cuda.matmul.allow_tf32:
                change.took("matrix products use TF32")

    def keep(*_: Any) -> None:
        pass

    set_precision = torch.set_float32_matmul_precision
    before = torch.get_float32_matmul_precision()
    of_convolutions = torch.backends.cudnn.allow_tf32

    def on() -> None:
        nonlocal before, of_convolutions
        before = torch.get_float32_matmul_precision()
        of_convolutions = torch.backends.cudnn.allow_tf32
        set_precision("high")
        torch.backends.cudnn.allow_tf32 = True

    def off() -> None:
        set_precision(before)
        torch.backends.cudnn.allow_tf32 = of_convolutions

    change.switches(on, off)
    change.around(torch, "set_float32_matmul_precision", keep)
    register_optimizer_step_post_hook(inspect)


def flush_denormal(change: Change) -> None:
    """Let the CPU treat denormal numbers as zero."""
    if not torch.set_flush_denormal(True):
        return change.cannot("this CPU can't flush denormal numbers to zero")

    def inspect(*_: Any) -> None:
        smallest = torch.full((1,), torch.finfo(torch.float32).tiny)
        if not (smallest / 2).any():
            change.took("denormal numbers are flushed to zero")

    register_optimizer_step_post_hook(inspect)


def bf16(change: Change) -> None:
    """Compute matrix products and convolutions in 16 bits.

    The results of the outermost modules are fp32 again.
    """
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[change.word]

    def inspect(_module: Any, _args: Any, out: Any) -> None:
        if any(each.dtype is dtype for each in tensors(out)):
            change.took(f"layers compute in {change.name}")

    def single(value: Any) -> Any:
        return value.float() if value.dtype is dtype else value

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        watched = () if change.done else module.modules()
        hooks = [each.register_forward_hook(inspect) for each in watched]
        device = next(module.parameters()).device.type
        with torch.autocast(device, dtype=dtype):
            out = inner(*args, **kwargs)
        for hook in hooks:
            hook.remove()
        return mapped(single, out)

    around_modules(call, change=change)


fp16 = bf16


def channels_last(change: Change) -> None:
    """Keep images and the weights of 2-D convolutions with their channels last."""
    layout = torch.channels_last
    known: dict[int, list[Any]] = {}

    def with_channels_last(value: Any) -> Any:
        return value.contiguous(memory_format=layout) if value.ndim == 4 else value

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if id(module) not in known:
            known[id(module)] = [
                each.weight for each in module.modules() if isinstance(each, torch.nn.Conv2d)
            ]
            weights = known[id(module)]
            if weights:
                module.to(memory_format=layout)
                if all(each.is_contiguous(memory_format=layout) for each in weights):
                    change.took(f"{len(weights)} convolutions are in channels-last format")
        if known[id(module)]:
            args = mapped(with_channels_last, args)
        return inner(*args, **kwargs)

    around_modules(call)


def compile(change: Change) -> None:
    """Compile every outermost module; for a GPU also with CUDA graphs."""
    compiled: dict[int, Any] = {}
    how = {"mode": "reduce-overhead"} if change.word == "cuda-graphs" else {}
    if how and not accelerator.has_graphs(torch):
        return change.cannot("no GPU")

    def call(module: Any, _: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if id(module) not in compiled:
            # The method module.compile() leaves a Sequential as it is.
            compiled[id(module)] = torch.compile(module, **how)
        out = compiled[id(module)](*args, **kwargs)
        # Dynamo is imported late, since it looks for changes of modules since its import.
        from torch._dynamo.utils import counters

        if counters["stats"].get("unique_graphs"):
            change.took(f"{type(module).__name__} is compiled")
        return out

    around_modules(call)


cuda_graphs = compile


def attention(change: Change) -> None:
    """Use fused attention.

    It does not compute weights that nn.MultiheadAttention also returns, or uses Transformers' sdpa.
    """

    def only_output(real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(real).bind(*args, **kwargs)
        bound.arguments["need_weights"] = False
        return real(*bound.args, **bound.kwargs)

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        for config in eager(module):
            config._attn_implementation = "sdpa"
        return inner(*args, **kwargs)

    def fused(real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        change.took("scaled_dot_product_attention is called")
        return real(*args, **kwargs)

    around(torch.nn.MultiheadAttention, "forward", only_output)
    around(torch.nn.functional, "scaled_dot_product_attention", fused)
    around_modules(call)


def eager(module: Any) -> list[Any]:
    """Return the configurations of Transformers' models that ask for attention step by step."""
    configs = [getattr(each, "config", None) for each in module.modules()]
    return [each for each in configs if getattr(each, "_attn_implementation", None) == "eager"]
