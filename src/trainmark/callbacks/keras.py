"""For ``model.fit(..., callbacks=[Epochs()])``."""

from __future__ import annotations

from typing import Any

import keras

from trainmark import hook


class Epochs(keras.callbacks.Callback):  # type: ignore[misc]  # untyped
    """Reports every epoch; what ``validation_data`` costs is its test.

    Args:
        examples: of an epoch, which Keras does not tell.
    """

    def __init__(self, examples: int | None = None) -> None:
        super().__init__()
        self._examples = examples
        self._logs: dict[str, Any] = {}
        self._open, self._steps = False, 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """The first step comes."""
        self._open, self._steps = True, 0
        hook.begin()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """The means so far; those of the last batch are the epoch's."""
        self._steps, self._logs = batch + 1, logs or {}

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """The training of the epoch is over."""
        self._end(self._logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """So is its test, if there was one."""
        logs = logs or {}
        self._end(logs)
        if "val_loss" in logs:
            hook.test(logs["val_loss"], _accuracy(logs, "val_"))

    def _end(self, logs: dict[str, Any]) -> None:
        if self._open:
            self._open = False
            hook.epoch(logs.get("loss"), _accuracy(logs), self._examples, self._steps)


def _accuracy(logs: dict[str, Any], prefix: str = "") -> Any:
    """Whichever accuracy was asked for."""
    names = ("accuracy", "acc", "sparse_categorical_accuracy", "categorical_accuracy", "binary_accuracy")
    return next((logs[prefix + name] for name in names if prefix + name in logs), None)
