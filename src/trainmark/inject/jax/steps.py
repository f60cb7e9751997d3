"""What is observed of JAX.

A step is a call of the outermost jitted function that is given its own earlier results and changes
them. An evaluation that is given its own metrics changes these alone. A function that computes
gradients is a step, too, if its weights are changed outside of jitted functions.

``lax.scan`` in such a function counts as one step. Where gradients come from another jitted
function, that one shows the loss and the examples.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

from ..observer import Observer
from ..patch import inside, time_reads
from ..places import users_place
from .between import Between
from .calls import Call, Now, at, is_float, sizes, weakly
from .compiles import Compiles
from .functions import Function, Functions
from .gradients import Gradients, is_of
from .moved import Moved
from .passed_on import PassedOn
from .training import Training, Weights, batch_of
from .trials import Trials
from .weights import any_changed, copies_to_recognise, is_readable, state_changed

_READS = (
    "item",
    "tolist",
    "block_until_ready",
    "__array__",
    "__float__",
    "__int__",
    "__bool__",
    "__format__",
    "__str__",
)
"""Methods of an array that wait for its value."""
_MOST_CALLS = 50
"""Number of calls without its own results after which a function is never taken for a step."""
_TRIED_CALLS = frozenset((1, 2, 3, 4, 5, 8, 12, 20, 30, 49))
"""Numbers of earlier calls after which we look whether a function changes its own results. The
learning rate, and so all changes, may be zero in the first steps."""
_LATEST = 8
"""Number of a function's latest calls whose results it may be given; several networks may take
turns."""


def install(jax: Any, observer: Observer) -> None:
    """Observe the trainings of this process."""
    steps = _Steps(jax, observer)
    observer.describe["jax"] = steps.describe
    observer.device_bytes["jax"] = steps.device_bytes
    observer.read_losses["jax"] = _read_losses
    observer.trainings.weights_of["jax"] = steps.weights_of
    observer.attempt("jax.jit", steps.functions.follow)
    observer.attempt("JAX tracebacks", _leave_out_of_tracebacks)
    arrays: Any = importlib.import_module("jax._src.array")
    reads = functools.partial(
        time_reads,
        arrays.ArrayImpl,
        _READS,
        observer,
        synchronised=steps.synchronised,
    )
    observer.attempt("jax.Array reads", reads)
    observer.attempt("jax.vjp", steps.follow_gradients)
    observer.attempt("JAX compiling", steps.follow_compiles)
    observer.attempt("JAX operations", steps.follow_operations)


def _leave_out_of_tracebacks() -> None:
    """Let JAX leave out our frames where it leaves out its own, and where it looks for a caller."""
    folder = os.path.join(os.path.dirname(__file__), "")
    for name in ("traceback_util", "source_info_util"):
        importlib.import_module(f"jax._src.{name}").register_exclusion(folder)


def _read_losses(kept: list[Any]) -> list[float]:
    """Return the numbers; a loss that was donated, or is on other machines, is left out."""
    return [float(each) for each in kept if each is not None and is_readable(each)]


def _size_of_first(pair: tuple[Any, int]) -> tuple[int, int]:
    return pair[0].ndim, pair[0].size


class _Steps:
    """Finds the functions whose calls are steps."""

    def __init__(self, jax: Any, observer: Observer) -> None:
        self._jax = jax
        self._observer = observer
        self._gradients = Gradients(jax, self._current, observer.guarded(self._eager_gradient))
        self.functions = Functions(
            jax, observer, self._look_before, self._look_after, self._gradients.shapes_of
        )
        self._gradients.begins_eagerly = self.functions.nothing_traced
        self.between = Between(observer, self._compiling)
        self._compiles = Compiles(observer, self._current, self._is_step)
        self._counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._calls: weakref.WeakKeyDictionary[Any, list[Call]] = weakref.WeakKeyDictionary()
        self._firsts: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()
        self._steps: weakref.WeakKeyDictionary[Any, Training] = weakref.WeakKeyDictionary()
        self._losses: weakref.WeakKeyDictionary[Any, Training] = weakref.WeakKeyDictionary()
        self._moved: weakref.WeakKeyDictionary[Any, Moved] = weakref.WeakKeyDictionary()
        self._eager: dict[str, Function] = {}
        self._eager_shapes: set[tuple[int, ...]] = set()
        self._known: weakref.WeakKeyDictionary[Any, Callable[[], Any]] = weakref.WeakKeyDictionary()
        self._averages: weakref.WeakSet[Any] = weakref.WeakSet()
        self._passed_on = PassedOn()
        self._described: dict[str, str] = {}
        self._device: Any = None
        self._weights: Weights | None = None
        self._continues: weakref.WeakKeyDictionary[Any, Weights] = weakref.WeakKeyDictionary()

    def follow_gradients(self) -> None:
        """Observe what computes gradients."""
        api: Any = importlib.import_module("jax._src.api")
        name = "_vjp" if hasattr(api, "_vjp") else "vjp"
        inside(api, name, self._gradients.differentiates, self._observer)
        loops: Any = importlib.import_module("jax._src.lax.control_flow.loops")
        for loop in ("scan", "while_loop"):
            inside(loops, loop, self._gradients.loops, self._observer)

    def follow_compiles(self) -> None:
        """Let JAX report when it compiles."""
        reported = self._observer.guarded(self._compiles.reported)
        self._jax.monitoring.register_event_duration_secs_listener(reported)

    def follow_operations(self) -> None:
        """Observe operations outside of jitted functions, when they are compiled."""
        pjit: Any = importlib.import_module("jax._src.pjit")

        def computes(arguments: dict[str, Any]) -> Generator[None, Any, None]:
            if self.functions.is_followed and not self.functions.is_inside:
                name = getattr(arguments["fun"], "__name__", "")
                self.between.computes(name, arguments["args_flat"])
            yield from ()

        inside(pjit, "_run_python_pjit", computes, self._observer)

    def synchronised(self, call: str, seconds: float, frame: FrameType, times: int = 1) -> None:
        """The user's code of ``frame`` has read an array."""
        if self.functions.is_followed:
            self.between.synchronised(call, seconds, frame, times)

    def _compiling(self) -> float:
        return self._compiles.between

    def _current(self) -> Any:
        return self.functions.current

    def _is_step(self, function: Any) -> bool:
        return function is not None and function in self._steps

    def weights_of(self, function: Any) -> list[Any]:
        """Return the weights of a step, as a thing that those of a continued training share."""
        return [self._steps[function].weights] if function in self._steps else []

    # Calls of jitted functions

    def _look_before(self, now: Now) -> None:
        """Look whether a function receives its own earlier outputs."""
        function = now.function
        given = now.given
        training = self._steps.get(function)
        if training is not None:
            has_evaluated = self.between.step_begins()
            self._compiles.step_begins(has_evaluated=has_evaluated)
            training.trials.before(given)
            now.has_moved = training.moved is None or training.moved.are_new(given)
        if training is not None or function in self._losses:
            self._observer.evaluated()
        elif (
            self._is_known(given)
            and not self._gradients.shapes_of(function)
            and function not in self._averages
        ):
            now.may_evaluate = self._observer.evaluates_since is None
            self.between.jitted_evaluation_begins()
            self._observer.evaluating()
        if training is None and function not in self._losses:
            self._look_for_step(now)

    def _is_average(self, now: Now, returned: list[Any]) -> bool:
        """Whether a function that is given weights returns other arrays of their shape.

        It may average the weights, for example.
        """
        function = now.function
        shapes = {each.shape for each in self._weights_now() if each.ndim > 1}
        if any(each.shape in shapes for each in returned) and not self._passed_on.are_returned(
            function, now.given, returned, shapes
        ):
            self._averages.add(function)
        return function in self._averages

    def _look_for_step(self, now: Now) -> None:
        """Look whether a function may be a step, before it is called."""
        function = now.function
        given = now.given
        if function not in self._counts:
            self._firsts[function] = copies_to_recognise(given)
        calls = self._calls.get(function)
        if calls is None:
            return
        calls[-1].is_followed_by(given)
        state: dict[int, int] = {}
        for call in calls[-_LATEST:]:
            state.update(call.returned())
        now.fed_back = {at: state[id(each)] for at, each in enumerate(given) if id(each) in state}
        shapes = self._gradients.shapes_of(function)
        if shapes and not self._is_known(given):
            moved = self._moved.setdefault(function, Moved())
            now.has_moved = moved.called(given, shapes)

    def _weights_now(self) -> list[Any]:
        """Return a weight of each known step, of those that still exist."""
        found = [weight() for weight in self._known.values()]
        return [weight for weight in found if weight is not None]

    def _is_known(self, given: list[Any]) -> bool:
        """Whether a function is given the weights of a known step."""
        weights = self._weights_now()
        is_own = any(each is weight for weight in weights for each in given)
        return is_own or self._passed_on.is_among(given)

    def _look_after(self, now: Now, found: Any) -> None:
        function = now.function
        given = now.given
        leaves = self._jax.tree_util.tree_leaves(found)
        if self._observer.evaluates_since is not None:
            self.between.jitted_evaluation_returned()
        if not leaves:
            return
        if now.may_evaluate and (
            self._gradients.shapes_of(function) or self._is_average(now, leaves)
        ):
            self._observer.evaluates_since = None  # its first call has shown that it trains
        self._passed_on.returns(function, leaves)
        if function in self._steps:
            pass
        elif now.fed_back and self._changes(now, leaves):
            self._found_step(now)
            now.has_moved = True
        elif now.has_moved:
            self._found_gradients(function, given)
        if function in self._losses:
            self._losses[function].called(given, leaves)
        training = self._steps.get(function)
        if training is not None:
            training.trials.after(leaves)
            if training.weight is not None:
                self._known[function] = weakly(at(leaves, training.weight))
                self._weights = training.weights
            if now.has_moved:
                self._step(function)
            self.between.step_ended(training.weights_among(leaves))
        elif function not in self._losses:
            self._note(function, given, found)

    # What is a step

    def _changes(self, now: Now, returned: list[Any]) -> bool:
        """Whether a call has changed weights among its own earlier results."""
        function = now.function
        given = now.given
        if self._counts.get(function, 0) not in _TRIED_CALLS:
            return False
        pairs = [(given[at], returned[to]) for at, to in now.fed_back.items() if to < len(returned)]
        pairs = [pair for pair in pairs if is_float(pair[0])]
        shapes = self._shapes(now)
        of_weights = [pair for pair in pairs if is_of(pair[0], shapes)]
        if of_weights:
            return any_changed(of_weights)
        if isinstance(function, Function) and not self._gradients.shapes_of(function):
            return False  # an environment, metrics or an average, for example
        return state_changed(pairs, self._constants(now))

    def _shapes(self, now: Now) -> set[tuple[int, ...]]:
        """Return the shapes of the weights that a function may change, as far as they are known.

        They are those that it computes gradients of, or those of gradients that it is given.
        """
        function = now.function
        shapes = self._gradients.shapes_of(function)
        if shapes:
            return shapes
        if not any(map(self._gradients.shapes_of, self._steps)):
            shapes = self._gradients.all_shapes() | self._eager_shapes
            # Gradients of several batches may be added up outside of jitted functions.
            if self._is_given_twice(now, shapes):
                return shapes
        given = now.given
        ids: set[int] = set()
        for other, calls in self._calls.items():
            if self._gradients.shapes_of(other):
                ids |= calls[-1].returned().keys()
        return {tuple(each.shape) for each in given if id(each) in ids}

    def _is_given_twice(self, now: Now, shapes: set[tuple[int, ...]]) -> bool:
        """Whether a function is given its weights, and as many gradients of them."""
        own = Counter(now.given[at].shape for at in now.fed_back)
        every = Counter(each.shape for each in now.given if is_float(each))
        weights = [shape for shape in own if shape in shapes]
        return bool(weights) and all(every[shape] >= 2 * own[shape] for shape in weights)

    def _constants(self, now: Now) -> int:
        """Return how many arrays a function was given again, next to others that differ.

        These are the weights that an evaluation is given, next to its batch.
        """
        earlier = self._calls[now.function][-1]
        others = [each for at, each in enumerate(now.given) if at not in now.fed_back]
        arrays = [each for each in others if hasattr(each, "shape") and each.shape]
        same = sum(map(earlier.was_given, arrays))
        return same if same < len(arrays) else 0

    def _found_step(self, now: Now) -> None:
        """A function was given its own results and has changed them: it is a step."""
        function = now.function
        given = now.given
        fed_back = {at: to for at, to in now.fed_back.items() if is_float(given[at])}
        ids = {id(each) for each in given}
        computes = self._source(function, ids)
        calls = self._calls[computes]
        itself = computes is function
        own = self._calls[function]
        # A call whose weights were given again has only warmed up, or its result was rejected.
        late = [at for at, call in enumerate(own) if not fed_back.keys() <= call.repeated]
        state = {id(given[at]) for at in now.fed_back}
        shapes = {given[at].shape for at in fed_back}
        loss = next((at for at, each in calls[-1].losses.items() if id(each) not in ids), None)
        arrays = sizes(given) if itself else calls[-1].sizes
        batch = batch_of(arrays, state, shapes)
        if self._gradients.are_in_loop(computes):
            batch = None
            self._observer.examples_unknown = "the step loops over batches"
        elif batch is None and self._gradients.shapes_of(computes):
            batch = batch_of(arrays, state, ())  # it has the shape of some weights
        first = self._firsts.get(function, {})
        trials = Trials(self._observer, weakref.ref(function), first, fed_back, own)
        training = Training(loss, batch, trials, self._weights_of_first(function))
        self._steps[function] = self._losses[computes] = training
        weights = [(given[at], to) for at, to in fed_back.items()]
        if weights:
            weight, training.weight = max(weights, key=_size_of_first)
            training.positions = sorted(fed_back.values())
            self._describe(weight)
        self._observer.places.made_at("step", function)
        earlier = own if itself else calls[:-1]
        of_late = [earlier[at] for at in late] if len(earlier) == len(own) else []
        self._step_late(function, len(late), of_late)
        training.called_earlier(calls[-1])
        self._forget(function)
        self._forget(computes)

    def _found_gradients(self, function: Any, given: list[Any]) -> None:
        """A function computes gradients of weights that are changed outside of it."""
        calls = self._calls[function]
        moved = self._moved[function]
        shapes = self._gradients.shapes_of(function)
        loss = next(iter(calls[-1].losses), None)
        batch = batch_of(sizes(given), (), shapes)
        if self._gradients.are_in_loop(function):
            batch = None
            self._observer.examples_unknown = "the step loops over batches"
        trials = Trials(self._observer, weakref.ref(function), {}, {}, [])
        training = Training(loss, batch, trials, self._weights_of_first(function), moved)
        self._steps[function] = self._losses[function] = training
        weight = next(each for each in given if is_float(each) and is_of(each, shapes))
        self._describe(weight)
        self._observer.places.made_at("step", function)
        self._observer.places.made_at("outside", function)
        position = next(at for at, each in enumerate(given) if each is weight)
        late = [call for call in calls if position not in call.repeated]
        self._step_late(function, len(late), late)
        self._forget(function)

    def _eager_gradient(self, given: list[Any], value: Any) -> None:
        """A gradient is computed outside of jitted functions."""
        if self._observer.is_led:
            return
        self.functions.follow_thread()
        place = users_place(sys._getframe(1)) or ""
        function = self._eager.setdefault(place, Function())
        shapes = {tuple(each.shape) for each in given if is_float(each)}
        self._eager_shapes |= shapes
        training = self._steps.get(function)
        if training is None:
            if self._is_known(given):
                return
            moved = self._moved.setdefault(function, Moved())
            if not moved.called(given, shapes):
                return
            trials = Trials(self._observer, weakref.ref(function), {}, {}, [])
            training = Training(0, None, trials, Weights(), moved)
            self._steps[function] = training
            self._describe(given[0])
            self._observer.places.setdefault("step", place)
            kind = "outside" if self.functions.was_traced else "eager"
            self._observer.places.setdefault(kind, place)
            self._step_late(function, moved.steps - 1, [])
        elif training.moved is None or not training.moved.are_new(given):
            return
        self._observer.evaluated()
        training.called([], self._jax.tree_util.tree_leaves(value))
        self._step(function)

    def _weights_of_first(self, function: Any) -> Weights:
        """Return the weights that a function was first given, as a thing that others share."""
        return self._continues.get(function) or Weights()

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

    def _note(self, function: Any, given: list[Any], found: Any) -> None:
        """Keep the calls of a function, unless it is called often and does not step."""
        count = self._counts[function] = self._counts.get(function, 0) + 1
        if count == 1 and self._weights is not None and self._is_known(given):
            self._continues[function] = self._weights
        if count > _MOST_CALLS:
            self._forget(function)
            return
        tree = self._jax.tree_util
        returned = [
            (tree.keystr(path), each) for path, each in tree.tree_flatten_with_path(found)[0]
        ]
        self._calls.setdefault(function, []).append(Call(given, returned))

    def _forget(self, function: Any) -> None:
        """Forget the calls of a function, since it is known what it is."""
        for each in (self._calls, self._firsts, self._continues):
            each.pop(function, None)

    # Steps

    def _step_late(self, function: Any, number: int, calls: list[Call]) -> None:
        """Report steps that were not known as such when they happened.

        Args:
            number: how many.
            calls: those that have computed their losses; empty if they are unknown.
        """
        if not number:
            return
        training = self._steps[function]
        losses = [training.loss_of(call) for call in calls]
        if losses and all(each is not None for each in losses):
            self._observer.loss(losses)
        examples = [training.examples_of(call) for call in calls]
        total = sum(each or 0 for each in examples) or None
        self._report(function, number, total)
        atexit.register(self._observer.guarded(self.between.finish))

    def _step(self, function: Any) -> None:
        training = self._steps[function]
        if training.loss is not None:
            self._observer.loss(training.loss)
        self._report(function, 1, training.examples)

    def _report(self, function: Any, steps: int, examples: int | None) -> None:
        """Report steps; what the hook itself compiles is not the script's."""
        self._compiles.are_ours = True
        self._observer.stepped(function, "jax", steps=steps, examples=examples)
        self._compiles.are_ours = False

    def _describe(self, weight: Any) -> None:
        """Keep what the weights are."""
        devices = getattr(getattr(weight, "sharding", None), "addressable_devices", ())
        self._device = next(iter(devices), None)
        device = {"device": str(self._device)} if devices else {}
        self._described = {"precision": str(weight.dtype), **device}

    def describe(self) -> dict[str, Any]:
        """Return what it computes with."""
        return {
            **self._described,
            "device_peak_bytes": self._counted("peak_bytes_in_use"),
            "compile_seconds": self._compiles.seconds,
            "step_compiles": self._compiles.of_step,
            "between_seconds": self.between.seconds,
            "step_reads": self.between.step_reads(),
        }

    def device_bytes(self) -> int | None:
        """Return the memory in use on the device; None on a CPU, where JAX does not count it."""
        return self._counted("bytes_in_use")

    def _counted(self, name: str) -> int | None:
        stats = self._device.memory_stats() if self._device is not None else None
        return (stats or {}).get(name)
