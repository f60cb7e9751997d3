"""Steps of scripts that change their weights without an optimiser of PyTorch.

Some libraries have other optimisers, such as fastai, and some scripts compute
``weight -= rate * weight.grad``. PyTorch does not see it. What shows such a step is that a weight
has other values than before its backward pass.
"""

from __future__ import annotations

import weakref
from typing import Any

from .observer import Observer

_MOST_NODES = 40
"""Number of operators before a loss among which a weight is looked for."""
_MOST_WAITING = 8
"""Most weights whose changes are waited for. A script may make new ones in every step."""
_MOST_COPIED = 4096
"""Most numbers of a weight that are compared one by one. So small a weight is kept until then, as a
function may have returned whose last step is still to be seen."""


class StepsByHand:
    """Reports a step where a weight has changed since its backward pass.

    It does so until an optimiser of PyTorch is made, which reports its steps.
    """

    def __init__(self, torch: Any, observer: Observer) -> None:
        self._torch = torch
        self._observer = observer
        self._weights: list[_Weight] = []
        self._waiting: list[_Weight] = []
        self._is_over = False

    def end(self) -> None:
        """An optimiser of PyTorch is made."""
        self._is_over = True
        self._waiting.clear()

    def differentiates(self, loss: Any) -> None:
        """A loss is about to be differentiated."""
        # Keras reports the steps of its optimisers, with PyTorch, too.
        if self._is_over or "keras" in self._observer.describe:
            return
        found = self._weight_of(loss)
        if found is None:
            return
        if found not in self._weights:
            alive = [each for each in self._weights if each() is not None]
            self._weights = [*alive, found][-_MOST_WAITING:]
        if found not in self._waiting:
            found.keep()
            self._waiting = [*self._waiting, found][-_MOST_WAITING:]

    def look(self) -> None:
        """Report the steps that have ended.

        It is called before whatever belongs to the next step, such as a forward pass.
        """
        if not self._waiting:
            return
        changed = [each for each in self._waiting if each.is_changed()]
        for each in changed:
            self._waiting.remove(each)
            self._observer.stepped(each, "torch")

    def _weight_of(self, loss: Any) -> _Weight | None:
        """Return a weight that a loss depends on; None without one.

        It is one that is known, else the farthest from the loss that is small: heads of a network
        may take turns, on a body that they share. A parameter of a module goes before another
        tensor, which may be an image whose gradients are of interest.
        """
        parameters: list[Any] = []
        others: list[Any] = []
        waiting = [loss.grad_fn]
        for _ in range(_MOST_NODES):
            if not waiting:
                break
            node = waiting.pop(0)
            if node is None:
                continue
            found = getattr(node, "variable", None)
            if isinstance(found, self._torch.nn.Parameter):
                parameters.append(found)
            elif found is not None:
                others.append(found)
            waiting += [each for each, _ in node.next_functions]
        candidates = parameters or others
        for each in self._weights:
            if any(each() is candidate for candidate in candidates):
                return each
        if not candidates:
            return None
        small = [each for each in candidates if each.numel() <= _MOST_COPIED]
        return _Weight(self._torch, (small or candidates)[-1])


class _Weight:
    """A weight, which stands for all that are changed with it, and for their optimiser."""

    def __init__(self, torch: Any, weight: Any) -> None:
        self._torch = torch
        self._weight = weakref.ref(weight)
        self._state: tuple[int, int] = (0, 0)
        self._copy: Any = None
        self._kept: Any = None

    def __call__(self) -> Any:
        """Return the weight; None if it does not exist any more."""
        return self._weight()

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The weight, as optimisers of PyTorch keep theirs."""
        weight = self._weight()
        return [] if weight is None else [{"params": [weight]}]

    def keep(self) -> None:
        """Keep the values, which are those before a backward pass."""
        weight: Any = self._weight()
        self._state = weight._version, weight.data_ptr()
        # A change of `weight.data` leaves the version as it is. Values on another device would have
        # to be waited for.
        is_small = weight.numel() <= _MOST_COPIED
        self._copy = weight.detach().clone() if is_small and weight.is_cpu else None
        self._kept = weight if is_small else None

    def is_changed(self) -> bool:
        """Whether the values are others now."""
        weight = self._weight()
        if weight is None:
            return False
        is_changed = self._state != (weight._version, weight.data_ptr())
        if not is_changed and self._copy is not None:
            is_changed = not self._torch.equal(self._copy, weight.detach())
        if is_changed:
            self._copy = self._kept = None
        return is_changed
