"""What a training has learned so far, kept and put back."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch


class State:
    """Weights, buffers, optimisers, gradient scalers and random numbers of a training.

    Everything is kept on the CPU, where there is room for it, and put back in place: the script may
    hold the same tensors.

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
        self._tensors = [(each, each.detach().to("cpu", copy=True)) for each in tensors.values()]
        self._groups = [(each, copy.deepcopy(_numbers(each))) for each in optimizers]
        self._scalers = [(each, copy.deepcopy(each.state_dict())) for each in scalers]
        self._put_back_random_state = _random_state()

    def put_back(self) -> None:
        """Put everything back."""
        with torch.no_grad():
            for tensor, kept in self._tensors:
                tensor.copy_(kept)
        for optimizer, (groups, states) in self._groups:
            for group, numbers in zip(optimizer.param_groups, groups):  # noqa: B905  (Python 3.8)
                group.update(copy.deepcopy(numbers))
            for weight, numbers in states.items():
                optimizer.state[weight].update(numbers)
        for scaler, kept in self._scalers:
            scaler.load_state_dict(kept)
        self._put_back_random_state()


def _tensors(modules: Iterable[Any], optimizers: Iterable[Any]) -> Iterator[Any]:
    """Yield all tensors that a step may change."""
    for module in modules:
        yield from module.parameters()
        yield from module.buffers()
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            yield from group["params"]
        for state in optimizer.state.values():
            yield from filter(torch.is_tensor, state.values())


def _numbers(optimizer: Any) -> tuple[list[dict[str, Any]], dict[Any, dict[str, Any]]]:
    """Return what an optimiser holds besides tensors: of its groups, and of each weight."""
    groups = [
        {name: value for name, value in group.items() if name not in ("params", *_SWITCHED)}
        for group in optimizer.param_groups
    ]
    states = {
        weight: {name: value for name, value in state.items() if isinstance(value, (int, float))}
        for weight, state in optimizer.state.items()
    }
    return groups, states


_SWITCHED = ("fused", "foreach")
"""What changes to an optimiser turn on and off themselves."""


def _random_state() -> Callable[[], None]:
    """Return a function that lets random numbers go on from here again."""
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
