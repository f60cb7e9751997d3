"""Changes to how batches are loaded."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader, IterableDataset, dataloader

from ... import accelerator, patch
from ...patch import around, length_of
from ...places import place_of
from .. import Change
from .outermost import around_modules, evaluates, mapped, tensors


def same_batch(change: Change) -> None:
    """Let every loader yield its first batch again.

    Without loaders, so does the function that returns the batches.
    """
    batches: dict[int, Any] = {}

    def repeat_first(real: Callable[..., Any], self: Any) -> Any:
        key = id(self._index_sampler)
        if key not in batches:
            batches[key] = real(self)
            return batches[key]
        if any(map(evaluates, latest)):  # evaluations get real data: some end only with it
            return real(self)
        if isinstance(self, dataloader._SingleProcessDataLoaderIter):
            self._next_index()  # this raises StopIteration at the end
        else:
            length = length_of(self)
            if length is not None and self._num_yielded >= length:
                raise StopIteration
        change.took(f"{type(self._dataset).__name__} is no longer read")
        return batches[key]

    for kind in (
        dataloader._SingleProcessDataLoaderIter,
        dataloader._MultiProcessingDataLoaderIter,
    ):
        change.around(kind, "_next_data", repeat_first)
    latest = _same_batch_of_function(change, batches)


def _same_batch_of_function(change: Change, loaded: dict[int, Any]) -> list[Any]:
    """Let the user's function that returned the root module's input return it again.

    Returns:
        As :func:`around_modules`.
    """
    returned: list[tuple[Any, Any]] = []
    calls = itertools.count()

    def note(frame: Any, event: str, value: Any) -> None:
        if event == "return" and value is not None and change.observer.is_users(frame):
            returned.append((frame, value))
            del returned[:-20]

    def before(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        sys.setprofile(None)
        if not module.training or loaded or not change.is_on:
            return inner(*args, **kwargs)
        number = next(calls)
        if 1 <= number <= _WATCHED:
            given = {id(each) for each in tensors((args, kwargs))}
            for frame, value in reversed(returned):
                if given & {id(each) for each in tensors(value)}:
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

    return around_modules(before)


_WATCHED = 3
"""Number of steps in which calls of functions are watched, which is slow."""


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
                patch.put(owner, name, _first_again(function))
                code = function.__code__
                change.observer.places.setdefault(
                    "loader", place_of(code.co_filename, code.co_firstlineno)
                )
                change.took(f"{name}() repeats its first batch")
                return True
    return False


def _first_again(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with the first result for each argument."""
    results: dict[str, Any] = {}

    @functools.wraps(function)
    def repeat_first(*args: Any, **kwargs: Any) -> Any:
        key = repr([each for each in (*args, *kwargs.values()) if isinstance(each, (str, bool))])
        if key not in results:
            results[key] = function(*args, **kwargs)
        return results[key]

    return repeat_first


def workers(change: Change) -> None:
    """Load batches in processes."""
    number = int(change.value or 2)

    def more(arguments: dict[str, Any]) -> None:
        if isinstance(arguments["dataset"], IterableDataset):
            change.cannot("every worker of an IterableDataset would yield all examples")
        else:
            arguments.update(num_workers=number, persistent_workers=True)

    def started(real: Callable[..., Any], self: Any, loader: Any) -> None:
        real(self, loader)
        change.took(f"batches come from {self._num_workers} worker processes")

    def began(real: Callable[..., Any], self: Any, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:  # a new iterator would draw its processes' seed here
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
        real(self, loader, first_iter)

    with_loader(more)
    around(dataloader._MultiProcessingDataLoaderIter, "__init__", started)
    around(dataloader._MultiProcessingDataLoaderIter, "_reset", began)


def no_workers(change: Change) -> None:
    """Load batches in the training process."""
    default = inspect.signature(DataLoader.__init__).parameters["prefetch_factor"].default
    alone = {
        "num_workers": 0,
        "prefetch_factor": default,
        "persistent_workers": False,
        "multiprocessing_context": None,
        "timeout": 0,
    }

    def none(arguments: dict[str, Any]) -> None:
        if arguments["num_workers"]:
            change.took(f"batches come from no process instead of {arguments['num_workers']}")
            arguments.update(alone)

    with_loader(none)


def persistent_workers(change: Change) -> None:
    """Keep the processes that load batches from one epoch to the next."""

    def keep(arguments: dict[str, Any]) -> None:
        if arguments["num_workers"]:
            arguments["persistent_workers"] = True

    def reset(real: Callable[..., Any], self: Any, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:
            change.took("the same processes load another epoch")
            # A new iterator would draw its processes' seed here.
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
        real(self, loader, first_iter)

    with_loader(keep)
    around(dataloader._MultiProcessingDataLoaderIter, "_reset", reset)


def prefetch(change: Change) -> None:
    """Fetch the next batch in a thread while a step computes."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1)

    def ahead(real: Callable[..., Any], self: Any) -> Any:
        coming = self.__dict__.pop("_coming", None) or pool.submit(real, self)
        data = coming.result()
        self._coming = pool.submit(real, self)
        change.took("the next batch is fetched while a step computes")
        return data

    around(dataloader._SingleProcessDataLoaderIter, "_next_data", ahead)


def pin(change: Change) -> None:
    """Copy batches from pinned memory without waiting."""
    if accelerator.kind(torch) is None:
        return change.cannot("no GPU")

    def to(real: Callable[..., Any], self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "cpu" and self.is_pinned():
            kwargs.setdefault("non_blocking", True)
            change.took("batches are copied from pinned memory")
        return real(self, *args, **kwargs)

    def pin(arguments: dict[str, Any]) -> None:
        arguments["pin_memory"] = True

    with_loader(pin)
    for name in accelerator.COPIES:
        around(torch.Tensor, name, to)


def batch(change: Change) -> None:
    """Make the batches of every loader larger.

    It counts if the network then gets that many examples.
    """
    times = int(change.value or 8)
    calls = itertools.count()
    sizes = _enlarge(change, times)

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if not change.done and not evaluates(module):
            given: set[int] = set()
            for each in tensors((args, kwargs)):
                given.update(each.shape[:2])
            for size in sizes:
                if any(number and number % size == 0 for number in given):
                    change.took(f"batches of {size} instead of {size // times}")
            if next(calls) == _WATCHED or not sizes:
                few = f"the dataset has too few examples for batches {times} times as large"
                change.cannot("the model does not receive the loader's batches" if sizes else few)
        return inner(*args, **kwargs)

    around_modules(call)


def _enlarge(change: Change, times: int) -> set[int]:
    """Multiply the batch size of every loader; returns the sizes."""
    sizes: set[int] = set()

    def larger(arguments: dict[str, Any]) -> None:
        size = arguments["batch_size"]
        if arguments["batch_sampler"] is not None:
            return  # it is made from another loader, as in Accelerate
        if size is None:
            change.cannot("the loader has no batch_size")
            return
        length = length_of(arguments["dataset"])
        if length is None or length >= times * size:
            arguments["batch_size"] = times * size
            sizes.add(times * size)

    with_loader(larger)
    return sizes


def no_accumulation(change: Change) -> None:
    """Compute what a step accumulates as one batch; nothing is computed for its other batches."""
    times = int(change.value)
    computed = 0
    loads = 0
    batches: dict[int, Any] = {}
    results: Any = None

    def once(real: Callable[..., Any], iterator: Any) -> Any:
        nonlocal loads
        if any(map(evaluates, latest)):
            return real(iterator)
        loads += 1
        if not computed or id(iterator) not in batches:
            batches[id(iterator)] = real(iterator)
        return batches[id(iterator)]

    def multiplied(gradient: Any) -> Any:
        return times * gradient

    def weighted(value: Any) -> Any:
        if value.requires_grad:
            value.register_hook(multiplied)
        return value

    def call(module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        nonlocal computed, loads, results
        if evaluates(module):
            return inner(*args, **kwargs)
        computed = computed + 1
        loaded = loads
        loads = 0
        if not loaded or not sizes:
            few = f"the dataset has too few examples for batches {times} times as large"
            change.cannot("the model is called several times for a batch" if sizes else few)
        if computed == 1:
            results = mapped(weighted, inner(*args, **kwargs))
            return results
        change.took(f"one batch instead of {times}")
        return mapped(apart, results)

    def apart(value: Any) -> Any:
        return value.detach().requires_grad_(value.requires_grad)

    def stepped(*_: Any) -> None:
        nonlocal computed
        computed = 0

    sizes = _enlarge(change, times)
    latest = around_modules(call)
    for kind in (
        dataloader._SingleProcessDataLoaderIter,
        dataloader._MultiProcessingDataLoaderIter,
    ):
        around(kind, "_next_data", once)
    register_optimizer_step_post_hook(stepped)


def with_loader(change: Callable[[dict[str, Any]], None]) -> None:
    """Change the arguments of every loader."""
    signature = inspect.signature(DataLoader.__init__)

    def built(real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        change(bound.arguments)
        real(*bound.args, **bound.kwargs)

    around(DataLoader, "__init__", built)
