"""Saves and restores the state of a training."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

_SWITCHED = ("fused", "foreach")
"""Options of an optimiser that experiments reset themselves."""


class State:
    """Weights, buffers, optimisers, gradient scalers and random numbers of a training.

    Tensors are kept on the CPU, since a GPU may have no room for them, and put back in place: the
    script may hold the same ones.

    Args:
        modules: its networks.
        optimizers: its optimisers.
        scalers: its gradient scalers.
    """

    def __init__(
        self, modules: Iterable[Any], optimizers: Iterable[Any], scalers: Iterable[Any] = ()
    ) -> None:
        optimizers = list(optimizers)
        tensors = {id(each): each for each in _tensors(modules, optimizers)}
        self._tensors = [(each, _on_cpu(each)) for each in tensors.values()]
        self._groups = [(each, _of_groups(each)) for each in optimizers]
        self._states = [
            (state, {name: _kept(value) for name, value in state.items()})
            for optimizer in optimizers
            for state in optimizer.state.values()
        ]
        self._scalers = [(each, copy.deepcopy(each.state_dict())) for each in scalers]
        self._put_back_random_state = _random_state()

    def put_back(self) -> None:
        """Put everything back."""
        for tensor, kept in self._tensors:
            _put(tensor, kept)
        for optimizer, groups in self._groups:
            for group, numbers in zip(optimizer.param_groups, groups):  # noqa: B905  (Python 3.8)
                group.update(copy.deepcopy(numbers))
        for state, numbers in self._states:
            for name, kept in numbers.items():
                if torch.is_tensor(kept) and torch.is_tensor(state.get(name)):
                    _put(state[name], kept)
                elif isinstance(kept, (int, float)):
                    state[name] = kept
        for scaler, kept in self._scalers:
            scaler.load_state_dict(kept)
        self._put_back_random_state()


def _on_cpu(tensor: Any) -> Any:
    return tensor.detach().to("cpu", copy=True)


def _put(tensor: Any, kept: Any) -> None:
    """Restore values without invalidating a pending backward pass."""
    tensor.data.copy_(kept)


def _tensors(modules: Iterable[Any], optimizers: Iterable[Any]) -> Iterator[Any]:
    """Yield all weights and buffers."""
    for module in modules:
        yield from module.parameters()
        yield from module.buffers()
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            yield from group["params"]


def _of_groups(optimizer: Any) -> list[dict[str, Any]]:
    """Return what the groups of an optimiser hold besides their weights."""
    return [
        copy.deepcopy(
            {name: value for name, value in group.items() if name not in ("params", *_SWITCHED)}
        )
        for group in optimizer.param_groups
    ]


def _kept(value: Any) -> Any:
    """Return a copy of a tensor or a number of a weight's state; None for anything else."""
    if torch.is_tensor(value):
        return _on_cpu(value)
    return value if isinstance(value, (int, float)) else None


def _random_state() -> Callable[[], None]:
    """Return a function that restores the present random state."""
    of_torch = torch.get_rng_state()
    of_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    of_python = random.getstate()
    numpy: Any = sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy is not None else None

    def put_back() -> None:
        torch.set_rng_state(of_torch)
        if of_gpus:
            torch.cuda.set_rng_state_all(of_gpus)
        random.setstate(of_python)
        if of_numpy is not None:
            numpy.random.set_state(of_numpy)

    return put_back
