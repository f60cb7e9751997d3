"""For ``model.fit(..., callbacks=[Epochs()])``."""

from __future__ import annotations

import time
from typing import Any

import keras

from trainmark import hook


class Epochs(keras.callbacks.Callback):  # type: ignore[misc]  # untyped
    """Report every epoch to trainmark; evaluation of ``validation_data`` is its test.

    Args:
        examples: number of examples per epoch, which Keras does not report.
    """

    def __init__(self, examples: int | None = None) -> None:
        super().__init__()
        self._examples = examples
        self._ended: float | None = None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._ended = None
        hook.begin()

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._end()  # the time of the test is not part of the epoch

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        self._end()
        hook.epoch(logs.get("loss"), _accuracy(logs), self._examples, self.params.get("steps"), ended=self._ended)
        if "val_loss" in logs:
            hook.test(logs["val_loss"], _accuracy(logs, "val_"))

    def _end(self) -> None:
        """Read the clock once, after the device has finished: reading the step counter waits for the last step."""
        if self._ended is None and hook.is_listening():
            keras.ops.convert_to_numpy(self.model.optimizer.iterations)
            self._ended = time.perf_counter()


def _accuracy(logs: dict[str, Any], prefix: str = "") -> Any:
    """Return the accuracy that the model was compiled with."""
    names = ("accuracy", "acc", "sparse_categorical_accuracy", "categorical_accuracy", "binary_accuracy")
    return next((logs[prefix + name] for name in names if prefix + name in logs), None)
