"""What is observed of Keras 3.

It is ``fit``, ``train_on_batch``, and the user's own loops that apply an optimiser.

It computes by TensorFlow, JAX or PyTorch, whose own files here see the rest: loaders, reads and, of
PyTorch, losses.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from collections.abc import Generator, Iterator
from typing import Any

from .observer import Observer, clock
from .patch import inside, keep_places, replace, time_saves
from .tensorflow import Functions, examples, number

_LEADS = ("fit", "train_on_batch", "evaluate", "predict", "test_on_batch", "predict_on_batch")
"""Methods in which Keras reports, not the framework that it computes by."""
_PREDICTS = ("predict", "predict_on_batch")
_ACCURACIES = (
    "accuracy",
    "acc",
    "sparse_categorical_accuracy",
    "categorical_accuracy",
    "binary_accuracy",
)


def install(keras: Any, observer: Observer) -> None:
    """Observe the trainings of this process."""
    fit = _Fit(keras, observer)
    if fit.engine == "torch":
        about = observer.describe["torch"]
        reads = observer.read_losses["torch"]
        observer.device_bytes["keras"] = observer.device_bytes["torch"]
    else:
        about = fit.describe
        reads = _read
    observer.describe["keras"] = about
    observer.read_losses["keras"] = reads
    observer.trainings.weights_of["keras"] = _weights_of
    observer.attempt("Keras fit", fit.follow)
    observer.attempt("Keras optimizers", functools.partial(_optimizers, keras, observer))
    saves = functools.partial(time_saves, keras.Model, ("save", "save_weights"), observer)
    observer.attempt("Keras saves", saves)


class _Fit:
    """Follows a ``fit`` through its list of callbacks.

    One callback more could make Keras wait for results.

    Methods named ``on_...`` are called with those of the list.
    """

    def __init__(self, keras: Any, observer: Observer) -> None:
        self._keras = keras
        self._observer = observer
        self.engine = keras.backend.backend()
        self._callbacks: Any = None
        self._batches: Any = None
        self._evaluations = self._fetched = self._examples = 0
        self._logs: dict[str, Any] = {}
        self._enter = observer.guarded(self._places)
        self._weight = 0
        self._mean = None
        self._predicted_at = -1
        self._predicted_in_row = False
        self._is_of_step = False

    def follow(self) -> None:
        """Observe the methods of models, the lists of callbacks, and the iterators over batches."""
        observer = self._observer
        for name in _LEADS:
            inside(self._keras.Model, name, functools.partial(self._led, name), observer)
        for name in filter(re.compile("on_").match, dir(self)):
            follow = functools.partial(self._called, name == "on_train_batch_end", name)
            inside(self._keras.callbacks.CallbackList, name, follow, observer)
        iterators: Any = importlib.import_module("keras.src.trainers.epoch_iterator")
        inside(iterators.EpochIterator, "_enumerate_iterator", self._enumerates, observer)
        if self.engine == "jax":
            trainer: Any = importlib.import_module("keras.src.backend.jax.trainer")
            replace(trainer.JAXEpochIterator, "_get_iterator", self._loaded)

    def _called(
        self, is_last: bool, name: str, arguments: dict[str, Any]
    ) -> Generator[None, Any, None]:
        """Follow a method of the list of callbacks.

        Callbacks see a step before the observer, which may end the training with it.
        """
        follow = self._observer.guarded(getattr(self, name))
        given = list(arguments.values())
        if not is_last:
            follow(*given)
        yield
        if is_last:
            follow(*given)

    def _led(self, name: str, arguments: dict[str, Any]) -> Generator[None, Any, None]:
        observer = self._observer
        if observer.is_led:
            return
        model = arguments["self"]
        frame = sys._getframe(3)
        self._enter(model, name, frame)
        self._is_of_step = name in _PREDICTS and self._predicts_in_steps()
        began = clock()
        observer.is_led = True
        try:
            found = yield
        finally:
            observer.is_led = False
            if self._is_of_step:
                self._is_of_step = False
                observer.computed_without_gradients(began, frame)
        if name == "train_on_batch":
            observer.guarded(self._trained_on_batch)(model, found, examples([arguments["x"]]))

    def _predicts_in_steps(self) -> bool:
        """Return whether a prediction is a part of the step, as that of an agent.

        It is if the step before had one, too. What comes before the first step is no evaluation.
        """
        steps = self._observer.steps
        if not steps:
            self._predicted_at = 0
            return True
        before = self._predicted_at
        if before == steps:
            return self._predicted_in_row
        self._predicted_at = steps
        self._predicted_in_row = before == steps - 1
        return self._predicted_in_row

    def _places(self, model: Any, method: str, frame: Any) -> None:
        if method in ("fit", "train_on_batch") and "fit" not in self._observer.places:
            self._observer.places.keep("fit", frame)
            self._observer.places.pop("model", None)  # it was a layer's, from PyTorch's file
            self._observer.places.made_at("model", model)

    def _trained_on_batch(self, model: Any, found: Any, size: int | None) -> None:
        if self.engine != "torch":
            self._observer.loss((number(found), 1, None, 0))
        self._stepped(model, 1, size)

    def on_train_begin(self, callbacks: Any, *_: Any, **__: Any) -> None:
        self._callbacks = callbacks
        self._planned = dict(callbacks.params or {})
        self._fetched = 0
        self._examples = 0
        self._iterations = 0 if self.engine == "jax" else int(callbacks.model.optimizer._iterations)

    def _plans(self, first_epoch: int) -> None:
        """Keep how many steps the first fit will have; after it, the number is unknown."""
        epochs = self._planned.get("epochs")
        steps = self._planned.get("steps")
        self._planned = {}
        if self._observer.steps or epochs is None or steps is None:
            self._observer.planned_steps = None
        else:
            self._observer.planned_steps = (epochs - first_epoch) * steps or None

    def on_epoch_begin(self, _callbacks: Any, epoch: int = 0, *_: Any, **__: Any) -> None:
        if self._planned:
            self._plans(epoch)
        self._weight = 0
        self._mean = None

    def _enumerates(self, arguments: dict[str, Any]) -> Generator[None, Any, None]:
        if not self._evaluations:
            self._batches = arguments["self"]
        yield

    def _loaded(self, batches: Any) -> Iterator[Any]:
        """Return an iterator that is written in C, so that it adds no frame of ours."""
        fetched = self._observer.guarded(self._fetch)

        def seen(start: float, batch: Any) -> Any:
            fetched(start, batch)
            return batch

        return map(seen, iter(clock, None), batches)

    def _fetch(self, start: float, batch: Any) -> None:
        self._observer.fetched(start)
        self._fetched = self._fetched + 1
        self._examples = self._examples + (examples(batch) or 0)

    def on_train_batch_end(self, callbacks: Any, last: int, logs: Any = None) -> None:
        if callbacks is not self._callbacks:
            return
        steps = self._fetched
        size = self._examples or None
        self._fetched = self._examples = 0
        if self.engine != "jax":
            steps, size = self._counted(callbacks.model, last)
        self._logs = logs or {}
        name = _loss_of(self._logs)
        if name is not None and self.engine != "torch":
            self._keep(callbacks.model, name, steps, size)
        self._stepped(callbacks.model, steps, size)

    def _counted(self, model: Any, last: int) -> tuple[int, int | None]:
        """Return the numbers of steps and examples of the steps up to ``last``.

        The epoch may not have this many.
        """
        at_once = self._batches.steps_per_execution
        total = self._batches.num_batches
        if total:
            steps = min(at_once, total - (last - at_once + 1))
        elif at_once > 1:
            before = self._iterations
            self._iterations = int(model.optimizer._iterations)
            steps = self._iterations - before
        else:
            steps = 1
        return steps, _examples(
            self._batches.data_adapter, steps, ends=total is not None and last + 1 >= total
        )

    def _keep(self, model: Any, name: str, steps: int, size: int | None) -> None:
        """Keep the means in the logs, from which the losses follow: they begin with the epoch."""
        mean = self._mean
        weight = self._weight
        if type(model).train_step.__module__.startswith("keras."):
            self._weight += size or steps
        elif any(
            each.name == name and isinstance(each, self._keras.metrics.Mean)
            for each in model.metrics
        ):
            self._weight += steps
        self._mean = self._logs[name]
        self._observer.loss((self._mean, self._weight, mean, weight))

    def _stepped(self, model: Any, steps: int, examples: int | None) -> None:
        self._observer.stepped(model.optimizer, "keras", steps, examples)

    def on_epoch_end(self, callbacks: Any, *_: Any, **__: Any) -> None:
        if callbacks is self._callbacks and self._logs:
            self._observer.epoch(**_figures(self._logs))
            self._logs = {}

    def on_test_begin(self, callbacks: Any, *_: Any, **__: Any) -> None:
        if self._is_of_step:
            return
        self.on_epoch_end(callbacks)
        if not self._evaluations:
            self._observer.evaluating()
        self._evaluations += 1

    def on_test_end(self, _: Any, logs: Any = None) -> None:
        if self._is_of_step:
            return
        self._evaluations -= 1
        if not self._evaluations:
            self._fetched = self._examples = 0
            self._observer.evaluated(**_figures(logs or {}))

    on_predict_begin = on_test_begin
    on_predict_end = on_test_end

    def describe(self) -> dict[str, Any]:
        """Return what it computes with."""
        if self._callbacks:
            policy = self._callbacks.model.dtype_policy
        else:
            policy = self._keras.config.dtype_policy()
        described = {
            "precision": policy.compute_dtype,
            "device": str(self._keras.distribution.list_devices()[0]),
        }
        if self.engine == "tensorflow":
            threads = sys.modules["tensorflow"].config.threading.get_intra_op_parallelism_threads()
            described["threads"] = threads or len(os.sched_getaffinity(0))
        return described


def _weights_of(optimizer: Any) -> list[Any]:
    """Return the weights that an optimiser changes; none before it knows them."""
    return list(getattr(optimizer, "_trainable_variables", ()))


def _examples(data: Any, steps: int, *, ends: bool) -> int | None:
    """Return the number of examples of some steps, with which an epoch may end.

    The result is None if the data does not show it.
    """
    size = data.batch_size
    rest = data.partial_batch_size
    dataset = getattr(data, "_dataset", None)
    while size is None and dataset is not None:
        if hasattr(dataset, "_batch_size"):
            size = int(dataset._batch_size)
            inside = int(dataset._input_dataset.cardinality())
            rest = inside % size if inside > 0 else None
        dataset = getattr(dataset, "_input_dataset", None)
    if size is None:
        return None
    lacking = size - rest if rest and ends else 0
    return int(steps * size - lacking)


def _loss_of(logs: dict[str, Any]) -> str | None:
    return next((name for name in ("loss", *logs) if name in logs and "loss" in name), None)


def _read(kept: list[Any]) -> list[float]:
    """Return the loss of each step."""
    return [_loss_between(*each) if isinstance(each, tuple) else float(each) for each in kept]


def _loss_between(mean: Any, weight: int, earlier: Any, before: int) -> float:
    """Return the mean of what was added to the mean ``earlier`` of the weight ``before``."""
    if not before or weight == before:
        return float(mean)
    return (float(mean) * weight - float(earlier) * before) / (weight - before)


def _figures(logs: dict[str, Any]) -> dict[str, float]:
    """Return loss and accuracy, as far as they are known."""
    found = {
        "loss": _loss_of(logs),
        "accuracy": next((each for each in _ACCURACIES if each in logs), None),
    }
    return {name: float(logs[key]) for name, key in found.items() if key is not None}


def _optimizers(keras: Any, observer: Observer) -> None:
    """Optimisers that the user's own loop applies."""
    tensorflow = sys.modules.get("tensorflow")
    jax = sys.modules.get("jax")
    functions = Functions(tensorflow, observer) if tensorflow is not None else None
    if functions is not None:
        observer.attempt("tf.function", functions.follow)

    @observer.guarded
    def applied(optimizer: Any, gradients: Any) -> None:
        if functions is not None and not tensorflow.executing_eagerly():  # type: ignore[union-attr]
            functions.traced(optimizer)
        elif jax is None or not any(isinstance(each, jax.core.Tracer) for each in gradients):
            observer.stepped(optimizer, "keras")

    def applies(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        if observer.is_led:
            return
        yield
        applied(arguments["self"], arguments["grads"])

    inside(keras.optimizers.Optimizer, "apply", applies, observer)
    for kind in (keras.optimizers.Optimizer, keras.Model):
        keep_places(kind, observer)
