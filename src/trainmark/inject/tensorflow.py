"""What is observed of TensorFlow: ``tf.data``, reads of tensors, gradients, and calls of a ``tf.function`` that trains."""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from typing import TYPE_CHECKING, Any

from .observer import clock
from .torch import timed_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .observer import Observer

_READS = ("numpy", "__float__", "__int__", "__bool__", "__format__", "__array__")
_CONTROL_FLOW = ("WhileBodyFuncGraph", "CondBranchFuncGraph")


def install(tensorflow: Any, observer: Observer) -> None:
    """Observe the data and the tensors of this process; steps are seen by ``keras.py``."""
    patches: dict[str, Callable[[Any, Observer], object]] = {
        "tf.data": _datasets,
        "tf.GradientTape": _gradients,
        "tf.Tensor reads": _reads,
    }
    for name, patch in patches.items():
        observer.attempt(name, functools.partial(patch, tensorflow, observer))


class Functions:
    """Calls of a ``tf.function``: one that applies an optimiser, which is only seen as it is traced, is a step."""

    def __init__(self, tensorflow: Any, observer: Observer) -> None:
        self._tensorflow, self._observer = tensorflow, observer
        self._outermost: Any = None
        self._applied: weakref.WeakKeyDictionary[Any, dict[int, _Applied]] = weakref.WeakKeyDictionary()

    def follow(self) -> None:
        """Patch the calls."""
        module: Any = importlib.import_module("tensorflow.python.eager.polymorphic_function.polymorphic_function")
        observer, call, called = self._observer, module.Function.__call__, self._observer.guarded(self._called)

        @functools.wraps(call)
        def calls(function: Any, *args: Any, **more: Any) -> Any:
            if self._outermost is not None or observer.is_led or observer.is_off:
                return call(function, *args, **more)
            self._outermost = function
            try:
                found = call(function, *args, **more)
            finally:
                self._outermost = None
            if function in self._applied:
                called(function, found, args, more)
            return found

        module.Function.__call__ = calls

    def traced(self, optimizer: Any) -> None:
        """Tell that an optimiser is applied in what is traced."""
        if self._outermost is not None:
            graph: Any = self._tensorflow.compat.v1.get_default_graph()
            plain = True
            while graph is not None:
                plain = plain and type(graph).__name__ not in _CONTROL_FLOW
                graph = getattr(graph, "outer_graph", None)
            with self._tensorflow.init_scope():
                applied = _Applied(optimizer, plain)
            self._applied.setdefault(self._outermost, {}).setdefault(id(optimizer), applied)

    def _called(self, function: Any, found: Any, args: Any, more: Any) -> None:
        shapes = [each.shape for _, each in leaves((args, more)) if getattr(each, "shape", ())]
        self._observer.forward(training=True, grad=True, examples=max(shapes, key=len)[0] if shapes else None)
        loss = scalar(found)
        if loss is not None:
            self._observer.loss(loss)
        for applied in list(self._applied[function].values()):
            steps = applied.steps()
            if steps:
                self._observer.stepped(applied.optimizer, "keras", steps)


class _Applied:
    """An optimiser that a function applies, once in each call or as often as its counter says."""

    def __init__(self, optimizer: Any, plain: bool) -> None:
        self.optimizer, self._plain, self._once = optimizer, plain, False
        self._count = int(optimizer._iterations)

    def steps(self) -> int:
        """Return the number of steps of the last call; only the first one's is read if all are the same."""
        if self._once:
            return 1
        before, self._count = self._count, int(self.optimizer._iterations)
        self._once = self._plain and self._count - before == 1
        return self._count - before


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested sequences and mappings hold, with its name."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, str(key))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from leaves(each, name)
    else:
        yield name, value


def scalar(value: Any) -> Any:
    """Return the loss among the results of a step: the number that is named so, or the first; None without numbers."""
    found = [(name, each) for name, each in leaves(value) if _is_number(each)]
    return next((each for name, each in found if "loss" in name), found[0][1] if found else None)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (getattr(value, "shape", None) == () and "float" in str(getattr(value, "dtype", "")))


def _datasets(_: Any, observer: Observer) -> None:
    datasets: Any = importlib.import_module("tensorflow.python.data.ops.dataset_ops")
    iterators: Any = importlib.import_module("tensorflow.python.data.ops.iterator_ops")
    iterate, advance = datasets.DatasetV2.__iter__, iterators.OwnedIterator.__next__

    @observer.guarded
    def opened(dataset: Any, iterator: Any, start: float, frame: Any) -> None:
        iterator._trainmark = observer.steps, start
        observer.made(dataset, frame)
        observer.opened(dataset, start)

    @observer.guarded
    def fetched(start: float, batch: Any) -> None:
        shapes = [each.shape for _, each in leaves(batch) if getattr(each, "shape", ())]
        observer.fetched(start, shapes[0][0] if shapes else None)

    @observer.guarded
    def exhausted(steps_before: int, start: float) -> None:
        if observer.steps > steps_before:
            observer.exhausted(steps_before)
        else:  # without a step, it was an evaluation
            observer.evaluating(start)
            observer.evaluated()

    @functools.wraps(iterate)
    def opens(self: Any) -> Any:
        start = clock()
        found = iterate(self)
        if not observer.is_led and hasattr(found, "_element_spec"):
            opened(self, found, start, sys._getframe(1))
        return found

    @functools.wraps(advance)
    def advances(self: Any) -> Any:
        start, opening = clock(), getattr(self, "_trainmark", None)
        if opening is None or observer.is_led:
            return advance(self)
        try:
            batch = advance(self)
        except StopIteration:
            exhausted(*opening)
            raise
        fetched(start, batch)
        return batch

    datasets.DatasetV2.__iter__, iterators.OwnedIterator.__next__ = opens, advances


def _gradients(tensorflow: Any, observer: Observer) -> None:
    gradient = tensorflow.GradientTape.gradient

    @observer.guarded
    def keep(target: Any, frame: Any) -> None:
        observer.place("backward", frame)
        if tensorflow.executing_eagerly() and _is_number(target):
            observer.loss(target)

    @functools.wraps(gradient)
    def differentiated(self: Any, target: Any, *args: Any, **more: Any) -> Any:
        if not observer.is_led:
            keep(target, sys._getframe(1))
        return gradient(self, target, *args, **more)

    tensorflow.GradientTape.gradient = differentiated


def _reads(_: Any, observer: Observer) -> None:
    kind = importlib.import_module("tensorflow.python.framework.ops")._EagerTensorBase  # type: ignore[attr-defined]
    for name in _READS:
        setattr(kind, name, timed_read(getattr(kind, name), name, observer))
