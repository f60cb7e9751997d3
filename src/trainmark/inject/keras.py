"""What is observed of Keras 3: ``fit``, ``train_on_batch``, and the user's own loops that apply an optimiser.

It computes by TensorFlow, JAX or PyTorch, whose own files here see the rest: loaders, reads and, of PyTorch, losses.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from .observer import clock
from .tensorflow import Functions, scalar
from .torch import after_init

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .observer import Observer

_LEADS = ("fit", "train_on_batch", "evaluate", "predict", "test_on_batch", "predict_on_batch")
"""Methods in which Keras reports, not the framework that it computes by."""


def install(keras: Any, observer: Observer) -> None:
    """Observe the trainings of this process."""
    fit = _Fit(keras, observer)
    if fit.engine == "torch":
        observer.describe["keras"], observer.read_losses["keras"] = observer.describe["torch"], observer.read_losses["torch"]
    else:
        observer.describe["keras"], observer.read_losses["keras"] = fit.describe, _read
    observer.attempt("Keras fit", fit.follow)
    observer.attempt("Keras optimizers", functools.partial(_optimizers, keras, observer))
    observer.attempt("Keras saves", functools.partial(_saves, keras, observer))


class _Fit:
    """Follows a ``fit`` through its list of callbacks; a callback more could make Keras wait for each step's results."""

    def __init__(self, keras: Any, observer: Observer) -> None:
        self._keras, self._observer = keras, observer
        self.engine = keras.backend.backend()
        self._callbacks: Any = None
        self._batches: Any = None
        self._evaluations = self._fetched = self._examples = 0
        self._logs: dict[str, Any] = {}
        self._weight, self._mean = 0, None

    def follow(self) -> None:
        """Patch the methods of models, the lists of callbacks, and the iterators over batches."""
        for name in _LEADS:
            _around(self._keras.Model, name, self._led)
        follows: dict[str, Callable[..., None]] = {
            "on_train_begin": self._begin,
            "on_epoch_begin": self._begin_epoch,
            "on_train_batch_end": self._end_batch,
            "on_epoch_end": self._end_epoch,
            "on_test_begin": self._begin_test,
            "on_test_end": self._end_test,
            "on_predict_begin": self._begin_test,
            "on_predict_end": self._end_test,
        }
        for name, follow in follows.items():
            self._follow(name, self._observer.guarded(follow))
        iterators: Any = importlib.import_module("keras.src.trainers.epoch_iterator")
        _around(iterators.EpochIterator, "_enumerate_iterator", self._enumerated)
        if self.engine == "jax":
            trainer: Any = importlib.import_module("keras.src.backend.jax.trainer")
            _around(trainer.JAXEpochIterator, "_get_iterator", self._loaded)

    def _follow(self, name: str, follow: Callable[..., None]) -> None:
        last = name == "on_train_batch_end"  # the callbacks have seen the last step before the training is ended

        def called(real: Callable[..., Any], callbacks: Any, *args: Any, **more: Any) -> None:
            if not last:
                follow(callbacks, *args, **more)
            real(callbacks, *args, **more)
            if last:
                follow(callbacks, *args, **more)

        _around(self._keras.callbacks.CallbackList, name, called)

    def _led(self, real: Callable[..., Any], model: Any, *args: Any, **more: Any) -> Any:
        observer = self._observer
        if observer.is_led:
            return real(model, *args, **more)
        if real.__name__ == "fit":
            observer.place("fit", sys._getframe(2))
        observer.is_led = True
        try:
            found = real(model, *args, **more)
        finally:
            observer.is_led = False
        if real.__name__ == "train_on_batch" and not observer.is_off:
            self._trained_on_batch(model, found, args, more)
        return found

    def _trained_on_batch(self, model: Any, found: Any, args: Any, more: Any) -> None:
        if self.engine != "torch":
            loss = scalar(found)
            self._observer.loss(float(found if loss is None else loss))
        shape = getattr(args[0] if args else more.get("x"), "shape", None)
        self._stepped(model, 1, shape[0] if shape else None)

    def _begin(self, callbacks: Any, *_: Any, **__: Any) -> None:
        self._callbacks, self._fetched, self._examples = callbacks, 0, 0

    def _begin_epoch(self, *_: Any, **__: Any) -> None:
        self._weight, self._mean = 0, None

    def _enumerated(self, real: Callable[..., Any], batches: Any) -> Any:
        if not self._evaluations:
            self._batches = batches
        return real(batches)

    def _loaded(self, real: Callable[..., Any], batches: Any) -> Iterator[Any]:
        iterator, fetched = iter(real(batches)), self._observer.guarded(self._fetch)
        while True:
            start = clock()
            try:
                batch = next(iterator)
            except StopIteration:
                return
            fetched(start, batch)
            yield batch

    def _fetch(self, start: float, batch: Any) -> None:
        self._fetched += 1
        shapes = [each.shape for each in self._keras.tree.flatten(batch) if getattr(each, "shape", ())]
        self._observer.fetched(start)
        self._examples += shapes[0][0] if shapes else 0

    def _end_batch(self, callbacks: Any, last: int, logs: Any = None) -> None:
        if callbacks is not self._callbacks:
            return
        at_once, total = self._batches.steps_per_execution, self._batches.num_batches or sys.maxsize
        steps, examples = min(at_once, total - (last - at_once + 1)), None
        if self.engine == "jax":
            steps, examples, self._fetched, self._examples = self._fetched, self._examples, 0, 0
        else:
            examples = _examples(self._batches.data_adapter, last, total, steps)
        self._logs = logs or {}
        name = _loss_of(self._logs)
        if name is not None and self.engine != "torch":
            self._keep(callbacks.model, name, steps, examples)
        self._stepped(callbacks.model, steps, examples)

    def _keep(self, model: Any, name: str, steps: int, examples: int | None) -> None:
        """Keep what tells the loss of a step: the logs have the mean since the epoch began."""
        mean, means, weight, before = self._logs[name], (self._mean,), self._weight, self._weight
        if getattr(type(model).train_step, "__module__", "").startswith("keras."):
            weight += examples or steps
        elif any(each.name == name and isinstance(each, self._keras.metrics.Mean) for each in model.metrics):
            weight += steps
        self._mean, self._weight = mean, weight
        self._observer.loss((mean, weight, *means, before))

    def _stepped(self, model: Any, steps: int, examples: int | None) -> None:
        self._observer.made_at("model", model)
        self._observer.stepped(model.optimizer, "keras", steps, examples)

    def _end_epoch(self, callbacks: Any, *_: Any, **__: Any) -> None:
        if callbacks is self._callbacks and self._logs:
            self._observer.epoch(*_figures(self._logs))
            self._logs = {}

    def _begin_test(self, callbacks: Any, *_: Any, **__: Any) -> None:
        self._end_epoch(callbacks)
        if not self._evaluations:
            self._observer.evaluating()
        self._evaluations += 1

    def _end_test(self, _: Any, logs: Any = None) -> None:
        self._evaluations -= 1
        if not self._evaluations:
            self._fetched = self._examples = 0
            self._observer.evaluated(*_figures(logs or {}))

    def describe(self) -> dict[str, Any]:
        """Return what it computes with."""
        keras = self._keras
        policy = self._callbacks.model.dtype_policy if self._callbacks else keras.config.dtype_policy()
        threads = None
        if self.engine == "tensorflow":
            threads = sys.modules["tensorflow"].config.threading.get_intra_op_parallelism_threads()
            threads = threads or len(os.sched_getaffinity(0))
        return {
            "threads": threads,
            "precision": policy.compute_dtype,
            "device": str(keras.distribution.list_devices()[0]),
        }


def _examples(data: Any, last: int, batches: int, steps: int) -> int | None:
    """Return the number of examples of the ``steps`` up to batch ``last``; None if the data don't tell."""
    size, rest = data.batch_size, data.partial_batch_size
    dataset = getattr(data, "_dataset", None)
    while size is None and dataset is not None:
        if hasattr(dataset, "_batch_size"):
            size, inside = int(dataset._batch_size), int(dataset._input_dataset.cardinality())
            rest = inside % size if inside > 0 else None
        dataset = getattr(dataset, "_input_dataset", None)
    if size is None:
        return None
    return steps * size - (size - rest if rest and last + 1 >= batches else 0)


def _loss_of(logs: dict[str, Any]) -> str | None:
    return next((name for name in ("loss", *logs) if name in logs and "loss" in name), None)


def _read(kept: list[Any]) -> list[float]:
    """Return the loss of each step."""
    return [_loss_between(*each) if isinstance(each, tuple) else float(each) for each in kept]


def _loss_between(mean: Any, weight: int, earlier: Any, before: int) -> float:
    if not before or weight == before:
        return float(mean)
    return (float(mean) * weight - float(earlier) * before) / (weight - before)


def _figures(logs: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return loss and accuracy."""
    names = ("accuracy", "acc", "sparse_categorical_accuracy", "categorical_accuracy", "binary_accuracy")
    found = (logs.get(_loss_of(logs)), next((logs[name] for name in names if name in logs), None))
    return tuple(None if each is None else float(each) for each in found)  # type: ignore[return-value]


def _optimizers(keras: Any, observer: Observer) -> None:
    """Optimisers that the user's own loop applies."""
    tensorflow, jax = sys.modules.get("tensorflow"), sys.modules.get("jax")
    functions = Functions(tensorflow, observer) if tensorflow is not None else None
    if functions is not None:
        observer.attempt("tf.function", functions.follow)

    @observer.guarded
    def applied(optimizer: Any, gradients: Any) -> None:
        if functions is not None and not tensorflow.executing_eagerly():  # type: ignore[union-attr]
            functions.traced(optimizer)
        elif jax is None or not any(isinstance(each, jax.core.Tracer) for each in gradients):
            observer.stepped(optimizer, "keras")

    def applies(real: Callable[..., Any], optimizer: Any, gradients: Any, *args: Any, **more: Any) -> Any:
        if observer.is_led:
            return real(optimizer, gradients, *args, **more)
        gradients = list(gradients)
        found = real(optimizer, gradients, *args, **more)
        applied(optimizer, gradients)
        return found

    _around(keras.optimizers.Optimizer, "apply", applies)
    for kind in (keras.optimizers.Optimizer, keras.Model):
        after_init(kind, observer)


def _saves(keras: Any, observer: Observer) -> None:
    saved = observer.guarded(observer.saved)

    def saves(real: Callable[..., Any], *args: Any, **more: Any) -> Any:
        start = clock()
        found = real(*args, **more)
        saved(clock() - start, sys._getframe(2))
        return found

    for name in ("save", "save_weights"):
        _around(keras.Model, name, saves)


def _around(kind: Any, name: str, by: Callable[..., Any]) -> None:
    """Replace a method, in the class that defines it, by one that gets the real one first."""
    owner = next(each for each in kind.__mro__ if name in vars(each))
    real = getattr(owner, name)

    @functools.wraps(real)
    def replaced(*args: Any, **more: Any) -> Any:
        return by(real, *args, **more)

    setattr(owner, name, replaced)
