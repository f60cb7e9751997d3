"""What is observed of TensorFlow.

It is ``tf.data``, reads of tensors, gradients, and calls of a ``tf.function`` that trains.
"""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Generator
from typing import Any

from .observer import Observer, clock
from .patch import inside, leaves, time_reads

_READS = ("numpy", "__float__", "__int__", "__bool__", "__format__", "__array__")
"""Methods that copy a tensor to the host, and so wait for its result."""
_ALIKE = 10
"""Number of calls with one step each, after which the steps of a function are not read from the
optimiser any more."""


def install(tensorflow: Any, observer: Observer) -> None:
    """Observe the data and the tensors of this process; steps are seen by ``keras.py``."""
    tensors: Any = importlib.import_module("tensorflow.python.framework.ops")
    observer.attempt("tf.data", functools.partial(_datasets, observer))
    observer.attempt("tf.GradientTape", functools.partial(_gradients, tensorflow, observer))
    reads = functools.partial(time_reads, tensors._EagerTensorBase, _READS, observer)
    observer.attempt("tf.Tensor reads", reads)


class Functions:
    """Calls of a ``tf.function``.

    A call that applies an optimiser is a step, which is only seen as the function is traced.
    """

    def __init__(self, tensorflow: Any, observer: Observer) -> None:
        self._tensorflow = tensorflow
        self._observer = observer
        self._outermost: Any = None
        self._applied: weakref.WeakKeyDictionary[Any, dict[int, _Applied]] = (
            weakref.WeakKeyDictionary()
        )
        self._called = observer.guarded(self._look)

    def follow(self) -> None:
        """Patch the calls."""
        module: Any = importlib.import_module(
            "tensorflow.python.eager.polymorphic_function.polymorphic_function"
        )
        inside(module.Function, "__call__", self._calls, self._observer)

    def _calls(self, arguments: dict[str, Any]) -> Generator[None, Any, None]:
        if self._outermost is not None or self._observer.is_led:
            return
        function = arguments["self"]
        self._outermost = function
        try:
            found = yield
        finally:
            self._outermost = None
        if function in self._applied:
            self._called(function, found, arguments["args"], arguments["kwds"])

    def traced(self, optimizer: Any) -> None:
        """Keep that an optimiser is applied in what is traced."""
        if self._outermost is not None:
            with self._tensorflow.init_scope():
                applied = _Applied(optimizer)
            self._applied.setdefault(self._outermost, {}).setdefault(id(optimizer), applied)

    def _look(self, function: Any, found: Any, args: Any, more: Any) -> None:
        self._observer.forward(training=True, grad=True, examples=examples((args, more)))
        loss = number(found)
        if loss is not None:
            self._observer.loss(loss)
        for applied in list(self._applied[function].values()):
            steps = applied.steps()
            if steps:
                self._observer.stepped(applied.optimizer, "keras", steps)


class _Applied:
    """An optimiser that a function applies."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self._count = int(optimizer._iterations)
        self._alike = 0

    def steps(self) -> int:
        """Return the number of steps of the last call.

        A loop may take many, and a condition none.
        """
        if self._alike == _ALIKE:
            return 1
        before = self._count
        self._count = int(self.optimizer._iterations)
        self._alike = self._alike + 1 if self._count - before == 1 else -sys.maxsize
        return self._count - before


def number(value: Any) -> Any:
    """Return the loss among the results of a step: the number that is named so, or the first.

    The result is None without numbers.
    """
    found = [
        (name, each) for name, each in leaves(value) if isinstance(each, float) or _is_number(each)
    ]
    return next((each for name, each in found if "loss" in name), found[0][1] if found else None)


def _is_number(value: Any) -> bool:
    return getattr(value, "shape", None) == () and "float" in str(getattr(value, "dtype", ""))


def examples(value: Any) -> int | None:
    """Return the number of examples of a batch, by its first array."""
    return next((each.shape[0] for _, each in leaves(value) if getattr(each, "shape", ())), None)


def _datasets(observer: Observer) -> None:
    datasets: Any = importlib.import_module("tensorflow.python.data.ops.dataset_ops")
    iterators: Any = importlib.import_module("tensorflow.python.data.ops.iterator_ops")

    @observer.guarded
    def opened(dataset: Any, iterator: Any, start: float, frame: Any) -> None:
        iterator._trainmark = observer.steps
        observer.places.made(dataset, frame)
        observer.opened(dataset, start)

    exhausted = observer.guarded(observer.exhausted)

    @observer.guarded
    def fetched(start: float, batch: Any) -> None:
        observer.fetched(start, examples(batch))

    def opens(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        start = clock()
        iterator = yield
        if not observer.is_led:
            opened(arguments["self"], iterator, start, sys._getframe(1))

    def advances(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        start = clock()
        opening = getattr(arguments["self"], "_trainmark", None)
        if opening is None or observer.is_led:
            return
        try:
            batch = yield
        except GeneratorExit:
            exhausted(opening, ends=True)
            raise
        fetched(start, batch)

    inside(datasets.DatasetV2, "__iter__", opens, observer)
    inside(iterators.OwnedIterator, "__next__", advances, observer)


def _gradients(tensorflow: Any, observer: Observer) -> None:
    @observer.guarded
    def keep(target: Any, frame: Any) -> None:
        observer.places.keep("backward", frame)
        if tensorflow.executing_eagerly() and _is_number(target):
            observer.loss(target)

    def differentiates(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        if not observer.is_led:
            keep(arguments["target"], sys._getframe(1))
        yield

    inside(tensorflow.GradientTape, "gradient", differentiates, observer)
