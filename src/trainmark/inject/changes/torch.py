"""Changes to a PyTorch training."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import json
import os
import sys
import threading
from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import DeviceType
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, IterableDataset, dataloader

from ..patch import around
from . import lines
from .busy import Busy

if TYPE_CHECKING:
    from collections.abc import Callable

    from . import Change

    Inner = Callable[..., Any]


# The loader


def same_batch(change: Change) -> None:
    """Every loader yields its first batch again; without loaders, so does the function that returns the batches."""
    batches: dict[int, Any] = {}

    def again(real: Inner, self: Any) -> Any:
        key = id(self._index_sampler)
        if key not in batches:
            batches[key] = real(self)
            return batches[key]
        if isinstance(self, dataloader._SingleProcessDataLoaderIter):
            self._next_index()  # raises StopIteration at the end
        elif (length := _length(self)) is not None and self._num_yielded >= length:
            raise StopIteration
        change.took(f"{type(self._dataset).__name__} is no longer read")
        return batches[key]

    for kind in (dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter):
        around(kind, "_next_data", again)
    _same_batch_of_function(change, batches)


def _same_batch_of_function(change: Change, loaded: dict[int, Any]) -> None:
    """Find the user's function that returned the tensor given to the root module, and let it return that again."""
    returned: list[tuple[Any, Any]] = []
    calls = itertools.count()

    def note(frame: Any, event: str, value: Any) -> None:
        if event == "return" and value is not None and change.observer.is_users(frame):
            returned.append((frame, value))
            del returned[:-20]

    def before(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        sys.setprofile(None)
        if not module.training or loaded:
            return inner(*args, **kwargs)
        number = next(calls)
        if 1 <= number <= _WATCHED:
            given = {id(each) for each in _tensors((args, kwargs))}
            for frame, value in reversed(returned):
                if given & {id(each) for each in _tensors(value)}:
                    if _freeze(change, frame):
                        number = _WATCHED
                    break
            else:
                if number == _WATCHED:
                    change.cannot("no DataLoader or function that returns batches found")
            returned.clear()
        out = inner(*args, **kwargs)
        if number < _WATCHED:
            sys.setprofile(note)
        return out

    _around_modules(before)


_WATCHED = 3
"""Steps in which the calls of functions are watched, which is slow."""


def _freeze(change: Change, frame: Any) -> bool:
    """Let a function of a module, or a method, return its first result again."""
    owners: list[Any] = [sys.modules.get(frame.f_globals.get("__name__", ""))]
    if "self" in frame.f_locals:
        owners += type(frame.f_locals["self"]).__mro__[:-1]
    if frame.f_code.co_flags & inspect.CO_GENERATOR:
        return False
    for owner in filter(None, owners):
        for name, function in list(vars(owner).items()):
            if getattr(function, "__code__", None) is frame.f_code:
                _set(owner, name, _first_again(function))
                code = function.__code__
                change.observer.places.setdefault(
                    "loader", f"{os.path.relpath(code.co_filename)}:{code.co_firstlineno}"
                )
                change.took(f"{name}() repeats its first batch")
                return True
    return False


def _first_again(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with the first result for each argument."""
    results: dict[str, Any] = {}

    @functools.wraps(function)
    def again(*args: Any, **kwargs: Any) -> Any:
        key = repr([each for each in (*args, *kwargs.values()) if isinstance(each, (str, bool))])
        if key not in results:
            results[key] = function(*args, **kwargs)
        return results[key]

    return again


def workers(change: Change) -> None:
    """Load batches in processes."""
    number = int(change.value or 2)

    def more(arguments: dict[str, Any]) -> None:
        if isinstance(arguments["dataset"], IterableDataset):
            change.cannot("every worker of an IterableDataset would yield all examples")
        else:
            arguments.update(num_workers=number, persistent_workers=True)

    def started(real: Inner, self: Any, loader: Any) -> None:
        real(self, loader)
        change.took(f"batches come from {self._num_workers} worker processes")

    def began(real: Inner, self: Any, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:  # a new iterator would draw its processes' seed here
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
        real(self, loader, first_iter)

    _with_loader(more)
    around(dataloader._MultiProcessingDataLoaderIter, "__init__", started)
    around(dataloader._MultiProcessingDataLoaderIter, "_reset", began)


def prefetch(change: Change) -> None:
    """Fetch the next batch in a thread while a step computes."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1)

    def ahead(real: Inner, self: Any) -> Any:
        coming = self.__dict__.pop("_coming", None) or pool.submit(real, self)
        data = coming.result()
        self._coming = pool.submit(real, self)
        change.took("the next batch is fetched while a step computes")
        return data

    around(dataloader._SingleProcessDataLoaderIter, "_next_data", ahead)


def pin(change: Change) -> None:
    """Copy batches from pinned memory without waiting."""
    if not torch.cuda.is_available():
        return change.cannot("no GPU")

    def to(real: Inner, self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "cpu" and self.is_pinned():
            kwargs.setdefault("non_blocking", True)
            change.took("batches are copied from pinned memory")
        return real(self, *args, **kwargs)

    _with_loader(lambda arguments: arguments.update(pin_memory=True))
    for name in ("to", "cuda"):
        around(torch.Tensor, name, to)


def batch(change: Change) -> None:
    """Make the batches of every loader larger; counts if the network then gets so many examples."""
    times, calls = int(change.value or 8), itertools.count()
    sizes = _enlarge(change, times)

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        if not change.done and not _evaluates(module):
            given = {number for each in _tensors((args, kwargs)) for number in each.shape[:2]}
            for size in sizes:
                if any(number and number % size == 0 for number in given):
                    change.took(f"batches of {size} instead of {size // times}")
            if next(calls) == _WATCHED or not sizes:
                few = f"the dataset has too few examples for batches {times} times as large"
                change.cannot("the model does not receive the loader's batches" if sizes else few)
        return inner(*args, **kwargs)

    _around_modules(call)


def _enlarge(change: Change, times: int) -> set[int]:
    """Multiply the batch size of every loader; returns the sizes."""
    sizes: set[int] = set()

    def larger(arguments: dict[str, Any]) -> None:
        size = arguments["batch_size"]
        if arguments["batch_sampler"] is not None:
            return  # it is made from another loader, as in Accelerate
        if size is None:
            change.cannot("the loader has no batch_size")
        elif (length := _length(arguments["dataset"])) is None or length >= times * size:
            arguments["batch_size"] = times * size
            sizes.add(times * size)

    _with_loader(larger)
    return sizes


def no_accumulation(change: Change) -> None:
    """Compute what a step accumulates as one batch; nothing is computed for its other batches."""
    times, computed, loads = int(change.value), 0, 0
    batches: dict[int, Any] = {}
    results: Any = None

    def once(real: Inner, iterator: Any) -> Any:
        nonlocal loads
        if any(map(_evaluates, latest)):
            return real(iterator)
        loads += 1
        if not computed or id(iterator) not in batches:
            batches[id(iterator)] = real(iterator)
        return batches[id(iterator)]

    def weighted(value: Any) -> Any:
        if value.requires_grad:
            value.register_hook(lambda gradient: times * gradient)
        return value

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        nonlocal computed, loads, results
        if _evaluates(module):
            return inner(*args, **kwargs)
        computed, loaded, loads = computed + 1, loads, 0
        if not loaded or not sizes:
            many = "the model is called several times for a batch"
            change.cannot(many if sizes else f"the dataset has too few examples for batches {times} times as large")
        if computed == 1:
            results = _mapped(weighted, inner(*args, **kwargs))
            return results
        change.took(f"one batch instead of {times}")
        return _mapped(lambda value: value.detach().requires_grad_(value.requires_grad), results)

    def stepped(*_: Any) -> None:
        nonlocal computed
        computed = 0

    sizes = _enlarge(change, times)
    latest = _around_modules(call)
    for kind in (dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter):
        around(kind, "_next_data", once)
    register_optimizer_step_post_hook(stepped)


def _length(known: Any) -> int | None:
    try:
        return len(known)
    except TypeError:
        return None


def _with_loader(change: Callable[[dict[str, Any]], None]) -> None:
    """Change the arguments of every loader."""
    signature = inspect.signature(DataLoader.__init__)

    def built(real: Inner, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        change(bound.arguments)
        real(*bound.args, **bound.kwargs)

    around(DataLoader, "__init__", built)


# Waiting for results, evaluation and saves


def no_sync(change: Change) -> None:
    """Lines of the user's that read a result get that of the line's first call again."""
    results: dict[Any, Any] = {}

    def stale(name: str, real: Inner, self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(2)
        if (name == "cpu" and self.device.type == "cpu") or not change.observer.is_users(frame):
            return real(self, *args, **kwargs)
        key = frame.f_code, frame.f_lasti, name, self.shape if self.ndim else ()
        if key in results:
            change.took(f"{change.observer.users_place(frame)} reuses an old value")
        else:
            results[key] = real(self, *args, **kwargs)
        return results[key]

    for name in ("item", "__float__", "__int__", "tolist", "cpu"):
        around(torch.Tensor, name, functools.partial(stale, name))


def no_evaluation(change: Change) -> None:
    """While the model evaluates, loaders end after a batch, and the model repeats its first output."""
    outputs: dict[Any, Any] = {}

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        if not _evaluates(module):
            return inner(*args, **kwargs)
        key = id(module), str([tuple(each.shape) for each in _tensors((args, kwargs))])
        if key in outputs:
            change.took("the model repeats its first output")
        else:
            outputs[key] = inner(*args, **kwargs)
        return outputs[key]

    _shorten(change, _around_modules(call), 1, evaluating=True)


def no_grad(change: Change) -> None:
    """Evaluate without recording gradients."""

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        if module.training or not torch.is_grad_enabled():
            return inner(*args, **kwargs)
        change.took(f"{type(module).__name__} evaluates without gradients")
        with torch.no_grad():
            return inner(*args, **kwargs)

    _around_modules(call)


def short(change: Change) -> None:
    """End every loader of a training after a few batches, so that an evaluation comes soon."""
    latest = _around_modules(lambda _, inner, args, kwargs: inner(*args, **kwargs))
    _shorten(change, latest, int(change.value), evaluating=False)


def _shorten(change: Change, latest: list[Any], number: int, *, evaluating: bool) -> None:
    """End every loader after a ``number`` of batches while the latest module evaluates, or while it doesn't."""

    def first_few(real: Inner, self: Any) -> Any:
        if any(map(_evaluates, latest)) is not evaluating:
            return real(self)
        change.took(f"loaders end after batch {number}")
        return itertools.islice(real(self), number)

    around(DataLoader, "__iter__", first_few)


def no_saves(change: Change) -> None:
    """Save nothing."""

    def nothing(real: Inner, *_: Any, **__: Any) -> None:
        change.took(f"{real.__name__} does nothing")

    around(torch, "save", nothing)
    for module, names in (("numpy", ("save", "savez", "savez_compressed")), ("safetensors.torch", ("save_file",))):
        for name in names:
            if hasattr(sys.modules.get(module), name):
                around(sys.modules[module], name, nothing)


# Threads and number formats


def threads(change: Change) -> None:
    """Compute with this number of CPU threads, whatever the script sets."""
    number, process = int(change.value), os.getpid()
    if number > len(os.sched_getaffinity(0)):
        return change.cannot(f"fewer than {number} cores are available")

    def keep(real: Inner, asked: int) -> None:
        if os.getpid() != process:  # a loader's process
            real(asked)

    def look(*_: Any) -> None:
        if torch.get_num_threads() == number:
            change.took(f"PyTorch uses {number} threads")

    torch.set_num_threads(number)
    around(torch, "set_num_threads", keep)
    register_optimizer_step_post_hook(look)


def fp32(change: Change) -> None:
    """Compute in single precision instead of double."""

    def single(value: Any) -> Any:
        return value.float() if value.dtype is torch.float64 else value

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        if any(each.dtype is torch.float64 for each in itertools.chain(module.parameters(), module.buffers())):
            module.float()
        out = inner(*_mapped(single, args), **_mapped(single, kwargs))
        if any(each.dtype is torch.float32 for each in _tensors(out)):
            change.took("the model computes in fp32")
        return out

    def default(real: Inner, dtype: Any) -> None:
        real(torch.float32 if dtype in (torch.float64, torch.DoubleTensor) else dtype)

    around(torch, "set_default_dtype", default)
    around(torch.nn.Module, "double", lambda _, self: self.float())
    _around_modules(call, losses=True)


def tf32(change: Change) -> None:
    """Let the GPU round the inputs of matrix products to TF32."""
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0):
        return change.cannot("no GPU with TF32")
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    change.took(f"the float32 matmul precision is {torch.get_float32_matmul_precision()}")


def bf16(change: Change) -> None:
    """Compute matrix products and convolutions in 16 bits; the results of the outermost modules are fp32 again."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[change.word]

    def look(_module: Any, _args: Any, out: Any) -> None:
        if any(each.dtype is dtype for each in _tensors(out)):
            change.took(f"layers compute in {change.name}")

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        hooks = [] if change.done else [each.register_forward_hook(look) for each in module.modules()]
        device = next(module.parameters()).device.type
        with torch.autocast(device, dtype=dtype):
            out = inner(*args, **kwargs)
        for hook in hooks:
            hook.remove()
        return _mapped(lambda value: value.float() if value.dtype is dtype else value, out)

    _around_modules(call)


fp16 = bf16


# The model


def channels_last(change: Change) -> None:
    """Keep images and the weights of 2-D convolutions with their channels last."""
    layout = torch.channels_last
    known: dict[int, list[Any]] = {}

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        if id(module) not in known:
            known[id(module)] = [each.weight for each in module.modules() if isinstance(each, torch.nn.Conv2d)]
            if weights := known[id(module)]:
                module.to(memory_format=layout)
                if all(each.is_contiguous(memory_format=layout) for each in weights):
                    change.took(f"{len(weights)} convolutions are in channels-last format")
        if known[id(module)]:
            args = _mapped(lambda value: value.contiguous(memory_format=layout) if value.ndim == 4 else value, args)
        return inner(*args, **kwargs)

    _around_modules(call)


def compile(change: Change) -> None:
    """Compile every outermost module; for a GPU also with CUDA graphs."""
    from torch._dynamo.utils import counters

    seen, how = set(), {"mode": "reduce-overhead"} if change.word == "cuda-graphs" else {}
    if how and not torch.cuda.is_available():
        return change.cannot("no GPU")

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        if id(module) not in seen:
            seen.add(id(module))
            module.compile(**how)
        out = inner(*args, **kwargs)
        if counters["stats"].get("unique_graphs"):
            change.took(f"{type(module).__name__} is compiled")
        return out

    _around_modules(call)


cuda_graphs = compile


def attention(change: Change) -> None:
    """Use fused attention: by not computing weights that nn.MultiheadAttention also returns, or Transformers' sdpa."""

    def only_output(real: Inner, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(real).bind(*args, **kwargs)
        bound.arguments["need_weights"] = False
        return real(*bound.args, **bound.kwargs)

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        for config in _eager(module):
            config._attn_implementation = "sdpa"
        return inner(*args, **kwargs)

    def fused(real: Inner, *args: Any, **kwargs: Any) -> Any:
        change.took("scaled_dot_product_attention is called")
        return real(*args, **kwargs)

    around(torch.nn.MultiheadAttention, "forward", only_output)
    around(torch.nn.functional, "scaled_dot_product_attention", fused)
    _around_modules(call)


def _eager(module: Any) -> list[Any]:
    """Return the configurations of Transformers' models that ask for attention step by step."""
    configs = [getattr(each, "config", None) for each in module.modules()]
    return [each for each in configs if getattr(each, "_attn_implementation", None) == "eager"]


# The optimiser


def fused(change: Change) -> None:
    """Use another implementation of PyTorch's own optimisers."""
    flag = change.name
    other = {"fused": "foreach", "foreach": "fused"}[flag]

    def step(real: Inner, self: Any, *args: Any, **kwargs: Any) -> Any:
        if change.done:
            return real(self, *args, **kwargs)
        if flag not in self.param_groups[0]:
            change.cannot(f"{type(self).__name__} has no {flag} implementation")
            return real(self, *args, **kwargs)
        for group in self.param_groups:
            group[flag] = True
            if other in group:
                group[other] = False
        with _Calls() as calls:
            out = real(self, *args, **kwargs)
        for name in calls.names:
            if name.startswith(f"aten._{flag}_"):
                change.took(f"{type(self).__name__} calls {name}")
        return out

    _around_steps(step)


foreach = fused


class _Calls(TorchDispatchMode):  # type: ignore[misc]
    """Keeps the names of the functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def torch_optimizer(change: Change) -> None:
    """Use PyTorch's fused optimiser with as much state instead of one written by hand."""
    instead: dict[int, Any] = {}

    def step(real: Inner, self: Any, closure: Any = None) -> Any:
        if type(self).__module__.startswith("torch.") or isinstance(self, tuple(_FUSED)):
            change.cannot(f"{type(self).__name__} is a PyTorch optimiser")
            return real(self) if closure is None else real(self, closure)
        if id(self) not in instead:
            out = real(self) if closure is None else real(self, closure)  # it creates its state
            instead[id(self)] = _like(self)
            change.took(f"{type(instead[id(self)]).__name__} replaces {type(self).__name__}")
            return out
        for own, theirs in zip(instead[id(self)].param_groups, self.param_groups):  # noqa: B905  (Python 3.8)
            own["lr"] = theirs.get("lr", own["lr"])
        return instead[id(self)].step(closure)

    _around_steps(step)


_FUSED = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


def _like(optimizer: Any) -> Any:
    """Return PyTorch's fused optimiser with as many numbers of state per weight."""
    groups = [{"params": group["params"], "lr": group.get("lr", 1e-3)} for group in optimizer.param_groups]
    weights = sum(each.numel() for group in groups for each in group["params"])
    known = {id(each) for group in groups for each in group["params"]}
    own = {name: value for name, value in vars(optimizer).items() if name not in ("param_groups", "defaults")}
    held = {id(each): each.numel() for each in _tensors(own) if id(each) not in known}
    moments = round(sum(held.values()) / weights)
    if moments > 1:
        return torch.optim.Adam(groups, fused=True)
    return torch.optim.SGD(groups, lr=1e-3, momentum=0.9 if moments else 0.0, fused=True)


# What can be changed


def look(change: Change) -> None:
    """Report what the plan of the experiments depends on, and the lines of the user's that take the most time."""
    facts: dict[str, Any] = {"workers": 0, "iterable": False, "conv": False, "graded": False, "attention": False}

    def built(arguments: dict[str, Any]) -> None:
        facts["workers"] = max(facts["workers"], arguments["num_workers"])
        facts["iterable"] |= isinstance(arguments["dataset"], IterableDataset)

    def call(module: Any, inner: Inner, args: Any, kwargs: Any) -> Any:
        if id(module) not in known:
            known.add(id(module))
            facts["conv"] |= any(isinstance(each, torch.nn.Conv2d) for each in module.modules())
            facts["attention"] |= bool(_eager(module))
        facts["graded"] |= not module.training and torch.is_grad_enabled()
        of_step["calls"] += not _evaluates(module)
        return inner(*args, **kwargs)

    def attends(real: Inner, *args: Any, **kwargs: Any) -> Any:
        facts["attention"] |= inspect.signature(real).bind(*args, **kwargs).arguments.get("need_weights", True)
        return real(*args, **kwargs)

    known: set[int] = set()
    of_step: Counter[Any] = Counter()
    accumulated: Counter[int] = Counter()

    def differentiates(real: Inner, *args: Any, **kwargs: Any) -> Any:
        of_step["backward"] += 1
        return real(*args, **kwargs)

    def fetches(real: Inner, iterator: Any) -> Any:
        of_step[id(iterator)] += not any(map(_evaluates, latest))
        return real(iterator)

    def tell(sampled: dict[str, Any]) -> None:
        change.observer.changed("look", json.dumps({**facts, **sampled}))

    busy = Busy(DeviceType.CUDA, lambda share: facts.update(busy=share)) if torch.cuda.is_available() else None

    def stepped(optimizer: Any, *_: Any) -> None:
        if busy is not None:
            busy.stepped()
        batches = {number for number in of_step.values() if number}
        accumulated[batches.pop() if len(batches) == 1 else 1] += 1
        facts["accumulates"] = accumulated.most_common(1)[0][0]
        of_step.clear()
        if "optimizer" not in facts:
            group = optimizer.param_groups[0]
            facts["optimizer"] = type(optimizer).__name__
            facts["handwritten"] = not isinstance(optimizer, _FUSED) and not type(optimizer).__module__.startswith(
                "torch."
            )
            facts.update((flag, group[flag]) for flag in ("fused", "foreach") if flag in group)
            facts["stack"] = lines.stack(change.observer)
            lines.sample(change.observer, tell)

    _with_loader(built)
    latest = _around_modules(call)
    around(torch.nn.MultiheadAttention, "forward", attends)
    around(torch.Tensor, "backward", differentiates)
    around(dataloader._BaseDataLoaderIter, "__next__", fetches)
    register_optimizer_step_post_hook(stepped)


def protect(writes: Any) -> None:
    """Save to nowhere what would be saved outside of the experiment's folders."""
    _set(torch, "save", writes.to_nowhere(torch.save, 1))
    _set(torch.jit, "save", writes.to_nowhere(torch.jit.save, 1))
    _set(torch.jit.ScriptModule, "save", writes.unless_elsewhere(torch.jit.ScriptModule.save, 1))
    if find_spec("safetensors"):
        safetensors: Any = importlib.import_module("safetensors")
        saves = writes.to_nowhere(safetensors.serialize_file, 1)
        for name in ("safetensors", "safetensors.torch", "safetensors.numpy"):
            if name in sys.modules:
                _set(sys.modules[name], "serialize_file", saves)
    writes.redirect_hdf5()

    def started(*_: Any) -> None:
        hook.remove()
        writes.redirect_hdf5()

    hook = register_optimizer_step_pre_hook(started)


# Patching

_set = setattr
_mapped = functools.partial(pytree.tree_map_only, torch.Tensor)


def _around_modules(call: Callable[[Any, Inner, Any, Any], Any], *, losses: bool = False) -> list[Any]:
    """Call ``call`` around every module that no other module calls; returns a list with the latest of them.

    Args:
        losses: also around those without weights, such as losses.
    """
    inside, latest = threading.local(), list[Any]()

    def outer(real: Inner, module: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "module", False) or not (losses or next(module.parameters(), None) is not None):
            return real(module, *args, **kwargs)
        latest[:] = [module]
        inside.module = True
        try:
            return call(module, functools.partial(real, module), args, kwargs)
        finally:
            inside.module = False

    around(torch.nn.Module, "__call__", outer)
    return latest


def _around_steps(step: Callable[..., Any]) -> None:
    """Call ``step`` around the step of every optimiser, inside of its hooks."""

    def built(real: Inner, self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        kind = type(self)
        inner = getattr(kind.step, "__wrapped__", kind.step)
        if not getattr(inner, "of_trainmark", False):
            mine = functools.wraps(inner)(functools.partial(step, inner))
            mine.of_trainmark = True  # type: ignore[attr-defined]
            hooked = Optimizer.profile_hook_step(mine)
            hooked.hooked = True
            _set(kind, "step", hooked)

    around(Optimizer, "__init__", built)


def _evaluates(module: Any) -> bool:
    return not module.training or not torch.is_grad_enabled()


def _tensors(value: Any) -> list[Any]:
    """Return the tensors in nested containers."""
    return [each for each in pytree.tree_flatten(value)[0] if isinstance(each, torch.Tensor)]
