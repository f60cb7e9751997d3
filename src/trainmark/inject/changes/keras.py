"""Changes to a Keras training; those of loaders and reads are PyTorch's if Keras computes by it."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import keras

from ..patch import around
from . import Change
from .facts import facts_of

_POLICIES = {"mixed-bf16": "mixed_bfloat16", "fp32": "float32"}
_SETTERS = (
    (keras.config, "set_floatx"),
    (keras.config, "set_dtype_policy"),
    (keras.backend, "set_floatx"),
    (keras.mixed_precision, "set_global_policy"),
)
_ENGINE = keras.backend.backend()
_KEPT = "lines", "inside", "samples", "early", "late", "known", "known_late", "known_at"
"""Facts of the script's lines. Parts of a step are hidden in compiled functions."""
_BATCH = 32
"""Examples in a batch of ``predict``, where the script does not say how many."""


def _keep(*_: Any) -> None:
    """Replace a setter, and keep what is set."""


def facts(change: Change) -> None:
    """Report what the plan of the experiments depends on."""
    every = facts_of(change.observer)
    switches = every.switches
    every.calls.count("predict", keras.Model, "predict")
    every.calls.count("predict", keras.Model, "predict_on_batch")
    eager: list[bool] = []

    def compiled(real: Callable[..., Any], model: Any, /, *args: Any, **more: Any) -> None:
        real(model, *args, **more)
        eager[:] = [bool(model.run_eagerly)]

    around(keras.Model, "compile", compiled)
    switches.watch("run_eagerly", lambda: any(eager))
    switches.set_by("run_eagerly", keras.Model, "compile")

    def stepped(real: Any, /, *args: Any, **more: Any) -> None:
        real(*args, **more)
        if _ENGINE == "tensorflow":
            every.begin(kept=_KEPT)
            switches.stepped()
        if _ENGINE != "torch":
            every.calls.stepped()

    around(change.observer, "stepped", stepped)


def direct_call(change: Change) -> None:
    """Call the model instead of its method predict, which makes a loop around each call."""

    def call(real: Callable[..., Any], model: Any, /, *args: Any, **more: Any) -> Any:
        bound = inspect.signature(real).bind(model, *args, **more)
        given = bound.arguments
        x: Any = given.get("x")
        size = given.get("batch_size") or _BATCH
        others = given.keys() - {"self", "x", "batch_size", "verbose"}
        if others or type(x).__name__ != "ndarray" or len(x) > size:
            return real(model, *args, **more)
        change.took("the model is called instead of predict()")
        out = model(x, training=False)
        return keras.tree.map_structure(keras.ops.convert_to_numpy, out)

    around(keras.Model, "predict", call)


def no_eager(change: Change) -> None:
    """Compile the step of a model that asks for none."""

    def compiled(model: Any) -> None:
        if model.run_eagerly:
            model.run_eagerly = False
            change.took("the step is compiled")

    _after_compile(change, compiled)


def same_batch(change: Change) -> None:
    """Feed the first batch again instead of loading."""
    if _ENGINE == "torch":
        return  # PyTorch's change does it

    fits = 0

    def fit(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        nonlocal fits
        fits += 1
        try:
            return real(*args, **more)
        finally:
            fits -= 1

    def repeat_first(real: Callable[..., Any], batches: Any) -> Any:
        if not fits:  # it predicts
            return real(batches)
        number = batches.num_batches
        if number is None:
            change.cannot("the number of batches per epoch is unknown")
            return real(batches)
        change.took("the first batch is repeated")
        if _ENGINE == "tensorflow":
            return real(batches).take(1).cache().repeat(number)
        adapter = batches.data_adapter
        first = next(iter(adapter.get_jax_iterator()))
        adapter.get_jax_iterator = functools.partial(itertools.repeat, first, number)
        return real(batches)  # the observer counts what it yields

    trainer: Any = importlib.import_module(f"keras.src.backend.{_ENGINE}.trainer")
    iterator = {"tensorflow": "TFEpochIterator", "jax": "JAXEpochIterator"}[_ENGINE]
    around(getattr(trainer, iterator), "_get_iterator", repeat_first)
    around(keras.Model, "fit", fit)


def fp32(change: Change) -> None:
    """Make layers with another type of numbers, whatever the script sets."""
    name = _POLICIES[change.word]
    keras.config.set_dtype_policy(name)
    keras.config.set_floatx("float32")

    def made(real: Callable[..., Any], layer: Any, /, *args: Any, **more: Any) -> None:
        real(layer, *args, **more)
        if layer.dtype_policy.name == name and type(layer) is not keras.layers.InputLayer:
            change.took(f"{type(layer).__name__} has the policy {name}")

    around(keras.layers.Layer, "__init__", made)
    for module, setter in _SETTERS:
        around(module, setter, _keep)


mixed_bf16 = fp32


def jit(change: Change) -> None:
    """Compile the step by XLA if it isn't, and don't if it is."""

    def other(model: Any) -> None:
        before = model.jit_compile
        model.jit_compile = not before
        if model.jit_compile is before or model.run_eagerly:
            change.cannot("the model can't be compiled")
        else:
            change.took(f"jit_compile is {model.jit_compile} instead of {before}")

    _after_compile(change, other)


def steps_per_execution(change: Change) -> None:
    """Take several steps in each call of the compiled function."""
    number = int(change.value or 8)
    if _ENGINE == "torch":
        return change.cannot("Keras on PyTorch runs one step per call")

    def several(model: Any) -> None:
        before.append(model.steps_per_execution)
        model.steps_per_execution = number

    def fit(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        if before:
            change.took(f"{number} steps per call instead of {before[0]}")
        return real(*args, **more)

    def alone(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        change.cannot("the script calls train_on_batch instead of fit")
        return real(*args, **more)

    before: list[int] = []
    _after_compile(change, several)
    around(keras.Model, "fit", fit)
    around(keras.Model, "train_on_batch", alone)
    return None


def _after_compile(change: Change, does: Callable[[Any], None]) -> None:
    def compiled(real: Callable[..., Any], model: Any, /, *args: Any, **more: Any) -> None:
        real(model, *args, **more)
        does(model)

    def applied(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        # This has no effect if the change took effect before.
        change.cannot("the script uses a custom loop instead of fit")
        return real(*args, **more)

    around(keras.Model, "compile", compiled)
    around(keras.optimizers.Optimizer, "apply", applied)


def no_saves(change: Change) -> None:
    """Save nothing."""
    for name in ("save", "save_weights"):
        around(keras.Model, name, change.nothing)
