"""For ``Trainer(callbacks=[Epochs()])`` of Lightning."""

from __future__ import annotations

import time
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from trainmark import hook
from trainmark.callbacks.torch import synchronize


class Epochs(Callback):
    """Report every epoch to trainmark; the validation after it is its test.

    Args:
        loss: name under which the module logs its training loss.
        accuracy: name under which it logs its training accuracy.
        test_loss: name under which it logs its validation loss.
        test_accuracy: name under which it logs its validation accuracy.
    """

    def __init__(
        self,
        loss: str = "train_loss",
        accuracy: str = "train_acc",
        test_loss: str = "val_loss",
        test_accuracy: str = "val_acc",
    ) -> None:
        self._names, self._test_names = (loss, accuracy), (test_loss, test_accuracy)
        self._ended: float | None = None
        self._steps = 0

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._ended, self._steps = None, trainer.global_step
        hook.begin()

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # A validation may also run in the middle of an epoch.
        if not trainer.sanity_checking and trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            self._end()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # The epoch's mean training metrics are known only now.
        validated = self._ended is not None
        self._end()
        hook.epoch(*_logged(trainer, self._names), steps=trainer.global_step - self._steps, ended=self._ended)
        if validated:
            hook.test(*_logged(trainer, self._test_names))

    def _end(self) -> None:
        if self._ended is None:
            synchronize()
            self._ended = time.perf_counter()


def _logged(trainer: Trainer, names: tuple[str, str]) -> tuple[Any, Any]:
    """Return the loss and accuracy that the module logged, with or without ``on_epoch``."""
    metrics = trainer.callback_metrics
    loss, accuracy = (metrics.get(f"{name}_epoch", metrics.get(name)) for name in names)
    return loss, accuracy
