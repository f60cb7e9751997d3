"""What is observed of JAX.

A step is a call of the outermost jitted function that is given its own earlier results and changes
them. An evaluation that is given its own metrics changes these alone.

``lax.scan`` in such a function counts as one step. Where gradients come from another jitted
function, that one shows the loss and the examples. Loops that apply gradients outside of a jitted
function need the hook.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from types import MethodType
from typing import Any

from .observer import Observer
from .patch import Kind, inside, note, replace, time_reads

_READS = (
    "item",
    "tolist",
    "block_until_ready",
    "__array__",
    "__float__",
    "__int__",
    "__bool__",
    "__format__",
)
"""Methods of an array that wait for its value."""
_MOST_CALLS = 50
"""Number of calls without its own results after which a function is never taken for a step."""
_MOST_TRIES = 5
"""Number of calls with its own results after which a function that changed none is no step."""
_MOST_COMPARED_BYTES = 1 << 28
"""Most bytes of a call's results that are compared with what it was given."""


def install(jax: Any, observer: Observer) -> None:
    """Observe the trainings of this process."""
    steps = _Steps(jax, observer)
    observer.describe["jax"] = steps.describe
    observer.read_losses["jax"] = _read_losses
    observer.attempt("jax.jit", steps.follow)
    observer.attempt("JAX tracebacks", _leave_out_of_tracebacks)
    arrays: Any = importlib.import_module("jax._src.array")
    reads = functools.partial(time_reads, arrays.ArrayImpl, _READS, observer)
    observer.attempt("jax.Array reads", reads)


def _leave_out_of_tracebacks() -> None:
    """Let JAX leave out our frames where it leaves out its own, and where it looks for a caller."""
    for name in ("traceback_util", "source_info_util"):
        importlib.import_module(f"jax._src.{name}").register_exclusion(__file__)


def _read_losses(kept: list[Any]) -> list[float]:
    return [float(each) for each in kept]


class _Call:
    """Leaves of the arguments and the results of a call; without the arrays, which may be large.

    Args:
        given: the leaves of the arguments.
        returned: the leaves of the results, with their paths.
    """

    def __init__(self, given: list[Any], returned: list[tuple[str, Any]]) -> None:
        self.sizes = _sizes(given)
        self._given = [_weakly(each) for each in given]
        self.examples = [_examples(each) for each in given]
        self._returned = [(weakref.ref(each), id(each)) for _, each in returned]
        numbers = [
            at
            for at, (_, each) in enumerate(returned)
            if each.shape == () and "float" in str(each.dtype)
        ]
        numbers.sort(key=lambda at: "loss" not in returned[at][0])
        self.losses = {at: returned[at][1] for at in numbers}

    def was_given(self, array: Any) -> bool:
        """Whether an array was among the arguments."""
        return any(given() is array for given in self._given)

    def returned(self) -> dict[int, int]:
        """Return the positions of the results that still exist, by their ids."""
        return {key: at for at, (each, key) in enumerate(self._returned) if each() is not None}


class _Training:
    """What a step computes.

    Args:
        loss: position of the loss among the results.
        batch: position of the batch among the arguments.

    Attributes:
        weight: position of a weight among the results of the step.
    """

    def __init__(self, loss: int | None, batch: int | None) -> None:
        self._loss = loss
        self._batch = batch
        self.loss: Any = None
        self.examples: int | None = None
        self.weight: int | None = None

    def called(self, given: list[Any], returned: list[Any]) -> None:
        """Keep loss and number of examples of a call."""
        self.loss = _at(returned, self._loss)
        self.examples = _examples(_at(given, self._batch))

    def called_earlier(self, call: _Call) -> None:
        """Keep those of an earlier call."""
        self.loss = None if self._loss is None else call.losses.get(self._loss)
        self.examples = _at(call.examples, self._batch)


def _nothing() -> Any:
    return None


def _weakly(thing: Any) -> Callable[[], Any]:
    """Return a weak reference, or what returns None for what can't have any, such as a number."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return _nothing


def _at(values: list[Any], position: int | None) -> Any:
    return None if position is None or position >= len(values) else values[position]


def _examples(array: Any) -> int | None:
    return (getattr(array, "shape", ()) or (None,))[0]


def _sizes(leaves: list[Any]) -> list[tuple[int, int]]:
    """Return id and size of each leaf; the size of numbers is 0."""
    return [(id(each), each.size if getattr(each, "shape", ()) else 0) for each in leaves]


def _caller(frame: Any) -> Any:
    """Return the frame that called the function of a frame, beyond JAX's filter of tracebacks."""
    while frame.f_back.f_code.co_filename.endswith("traceback_util.py"):
        frame = frame.f_back
    return frame.f_back


class _Function:
    """A function of the user's, which may be compiled again and again."""


class _Jitted:
    """Stands for a jitted function, and shows its calls; everything else is that function's.

    Jitted functions are written in C, which neither tells of their calls nor can be derived from.
    """

    def __init__(self, jitted: Any, call: Callable[..., Any], function: _Function) -> None:
        functools.update_wrapper(self, jitted)
        self.__wrapped__ = jitted.__wrapped__
        self._jitted = jitted
        self._calls = call
        self._function = function

    def __call__(self, /, *args: Any, **more: Any) -> Any:
        return self._calls(self._function, self._jitted, args, more)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._jitted)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __get__(self, thing: Any, kind: Any = None) -> Any:
        return self if thing is None else MethodType(self, thing)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._jitted.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self._jitted)

    def __eq__(self, other: Any) -> bool:
        return bool(self._jitted == getattr(other, "_jitted", other))

    def __hash__(self) -> int:
        return hash(self._jitted)


class _Steps:
    """Finds the functions whose calls are steps."""

    def __init__(self, jax: Any, observer: Observer) -> None:
        self._jax = jax
        self._observer = observer
        self._inside = threading.local()
        self._counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._calls: weakref.WeakKeyDictionary[Any, list[_Call]] = weakref.WeakKeyDictionary()
        self._steps: weakref.WeakKeyDictionary[Any, _Training] = weakref.WeakKeyDictionary()
        self._losses: weakref.WeakKeyDictionary[Any, _Training] = weakref.WeakKeyDictionary()
        self._weight: Any = None
        self._described: dict[str, str] = {}
        self._device: Any = None
        self._given: list[Any] = []
        self._fed_back: dict[int, int] = {}
        self._tries: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._functions: dict[Any, tuple[weakref.ref[_Jitted], _Function]] = {}
        self._made = observer.guarded(observer.places.made)
        self._before = observer.guarded(self._look_before)
        self._after = observer.guarded(self._look_after)

    def follow(self) -> None:
        """Wrap what ``jax.jit`` returns, and calls of what was compiled ahead of time."""
        library = os.path.dirname(self._jax.__file__) + os.sep

        def jit(found: Any) -> Any:
            if _caller(sys._getframe(2)).f_code.co_filename.startswith(library):
                return found
            if hasattr(found, "lower"):
                return self._wrapped(found)

            def decorate(function: Any) -> Any:
                return self._wrapped(found(function))

            return decorate

        def calls(arguments: dict[str, Any]) -> Generator[None, Any, None]:
            if self._is_inside():
                return
            compiled = arguments["self"]
            self._inside.call = True
            try:
                self._before(compiled, arguments["args"], arguments["kwargs"])
                found = yield
            finally:
                self._inside.call = False
            self._after(compiled, found)

        replace(self._jax, "jit", jit)
        note(self._jax.stages, "Wrapped", Kind.STAND_IN)
        inside(self._jax.stages.Compiled, "__call__", calls, self._observer)

    def _is_inside(self) -> bool:
        """Whether a call is a part of another one, or of a step that Keras reports."""
        return getattr(self._inside, "call", False) or self._observer.is_led

    def _wrapped(self, jitted: Any) -> Any:
        code = getattr(jitted.__wrapped__, "__code__", None)
        earlier, function = self._functions.get(code, (_nothing, _Function()))
        if earlier() is not None:  # two functions with the same code, such as of a factory
            function = _Function()
        call = _Jitted(jitted, self._call, function)
        if code is not None:
            self._functions[code] = weakref.ref(call), function
        self._made(function, sys._getframe(1))
        return call

    def _call(self, function: Any, jitted: Callable[..., Any], args: Any, more: Any) -> Any:
        if self._is_inside():
            return jitted(*args, **more)
        self._inside.call = True
        try:
            self._before(function, args, more)
            found = jitted(*args, **more)
        finally:
            self._inside.call = False
        self._after(function, found)
        return found

    def _look_before(self, function: Any, args: Any, more: Any) -> None:
        """Take a function that receives its own earlier outputs for the training step."""
        given = self._given = self._jax.tree_util.tree_leaves((args, more))
        self._fed_back = {}
        if function in self._losses or function in self._steps:
            self._observer.evaluated()
        elif self._weight is not None and any(each is self._weight for each in given):
            self._observer.evaluating()
        if function in self._steps or function not in self._calls:
            return
        state = self._calls[function][-1].returned()
        self._fed_back = {at: state[id(each)] for at, each in enumerate(given) if id(each) in state}

    def _found_step(self, function: Any, given: list[Any]) -> None:
        """A function was given its own results and has changed them: it is a step."""
        state = self._calls[function][-1].returned()
        ids = {id(each) for each in given}
        computes = self._source(function, ids)
        calls = self._calls[computes]
        itself = computes is function
        loss = next((at for at, each in calls[-1].losses.items() if id(each) not in ids), None)
        sizes = _sizes(given) if itself else calls[-1].sizes
        batches = [(size, -at) for at, (key, size) in enumerate(sizes) if size and key not in state]
        training = _Training(loss, -max(batches)[1] if batches else None)
        self._steps[function] = self._losses[computes] = training
        weights = [each for each in given if id(each) in state and "float" in str(each.dtype)]
        if weights:
            self._device = next(iter(weights[0].sharding.device_set))
            self._described = {"precision": str(weights[0].dtype), "device": str(self._device)}
            training.weight = state[id(weights[0])]
        self._observer.places.made_at("step", function)
        training.called_earlier(calls[-1] if itself else calls[0])
        self._step(function)  # this reports the first step, late
        training.called_earlier(calls[-1])

    def _source(self, function: Any, ids: set[int]) -> Any:
        """Return the function that computes the loss.

        It is the function itself, or one called before it that gives it results.
        """
        earlier = [each for each in self._calls if self._counts[each] > self._counts[function]]
        for other in (function, *earlier):
            last = self._calls[other][-1]
            if any(id(each) not in ids for each in last.losses.values()) and (
                other is function or last.returned().keys() & ids
            ):
                return other
        return function

    def _look_after(self, function: Any, found: Any) -> None:
        given = self._given
        self._given = []
        leaves = self._jax.tree_util.tree_leaves(found)
        if not leaves or isinstance(leaves[0], self._jax.core.Tracer):
            return
        if self._fed_back and self._changes(function, given, leaves):
            self._found_step(function, given)
        if function in self._losses:
            self._losses[function].called(given, leaves)
        if function in self._steps:
            self._weight = _at(leaves, self._steps[function].weight)
            self._step(function)
        elif function not in self._losses:
            self._note(function, given, found)

    def _changes(self, function: Any, given: list[Any], returned: list[Any]) -> bool:
        """Whether a call has changed weights among its own earlier results.

        Evaluations are often given weights and metrics, and return both; then the weights are the
        same, and the metrics have fewer dimensions.
        """
        tries = self._tries[function] = self._tries.get(function, 0) + 1
        if tries > _MOST_TRIES:
            return False
        pairs = [
            (given[at], returned[to]) for at, to in self._fed_back.items() if to < len(returned)
        ]
        pairs = [pair for pair in pairs if "float" in str(pair[0].dtype)]
        weight = self._weight
        if weight is not None and any(each is weight for each in given):
            pairs = [pair for pair in pairs if pair[0].shape == weight.shape]
        if any(before.is_deleted() for before, _ in pairs):  # it was donated, to be changed
            return True
        pairs.sort(key=lambda pair: (-min(pair[0].ndim, 2), pair[0].size))
        left = _MOST_COMPARED_BYTES
        unchanged = self._constants(function, given)
        for before, after in pairs:
            left -= before.nbytes
            if left < 0 or not before.is_fully_addressable:
                return True
            if before.shape != after.shape or (before._value != after._value).any():
                return before.ndim > 1 or not unchanged
            unchanged += before.ndim > 0
        return False

    def _constants(self, function: Any, given: list[Any]) -> int:
        """Return how many arrays a function was given again, next to others that differ.

        These are the weights that an evaluation is given, next to its batch.
        """
        earlier = self._calls[function][-1]
        others = [each for at, each in enumerate(given) if at not in self._fed_back]
        arrays = [each for each in others if hasattr(each, "shape") and each.shape]
        same = sum(map(earlier.was_given, arrays))
        return same if same < len(arrays) else 0

    def _note(self, function: Any, given: list[Any], found: Any) -> None:
        """Keep the last two calls of a function, unless it is called often and does not step."""
        count = self._counts[function] = self._counts.get(function, 0) + 1
        if count > _MOST_CALLS:
            self._calls.pop(function, None)
            return
        tree = self._jax.tree_util
        returned = [
            (tree.keystr(path), each) for path, each in tree.tree_flatten_with_path(found)[0]
        ]
        self._calls[function] = [*self._calls.get(function, [])[-1:], _Call(given, returned)]

    def _step(self, function: Any) -> None:
        training = self._steps[function]
        if training.loss is not None:
            self._observer.loss(training.loss)
        self._observer.stepped(function, "jax", examples=training.examples)

    def describe(self) -> dict[str, Any]:
        """Return what it computes with."""
        return {**self._described, "device_peak_bytes": self._peak_bytes()}

    def _peak_bytes(self) -> int | None:
        """Return the peak of the memory in use on the device.

        The result is None on a CPU, where JAX does not count it.
        """
        stats = self._device.memory_stats() if self._device is not None else None
        return (stats or {}).get("peak_bytes_in_use")
