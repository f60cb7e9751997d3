"""For ``Trainer(callbacks=[Epochs()])`` of Hugging Face's Transformers."""

from __future__ import annotations

import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainmark import hook
from trainmark.callbacks.torch import synchronize


class Epochs(TrainerCallback):
    """Report every epoch to trainmark; an evaluation after it is its test, one during it is part of the epoch.

    The loss is the next mean that the trainer logs, so set ``logging_strategy="epoch"`` to get that of the epoch.
    """

    def __init__(self) -> None:
        self._first_step, self._within = 0, False
        self._ended: float | None = None
        self._counts: dict[str, int | None] = {}

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any
    ) -> None:
        self._tell()
        self._first_step, self._within = state.global_step, True
        hook.begin()

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        # It is reported later, when its loss is logged.
        synchronize()
        self._ended, self._within = time.perf_counter(), False
        examples: Any = getattr(rest.get("train_dataloader"), "dataset", None)
        counted = len(examples) if hasattr(examples, "__len__") else None
        self._counts = {"examples": counted, "steps": state.global_step - self._first_step}

    def on_log(self, *about: Any, logs: dict[str, float] | None = None, **rest: Any) -> None:
        if logs and "loss" in logs:
            self._tell(logs["loss"])

    def on_evaluate(self, *about: Any, metrics: dict[str, float] | None = None, **rest: Any) -> None:
        self._tell()
        if not self._within and metrics:
            hook.test(metrics.get("eval_loss"), metrics.get("eval_accuracy"))

    def on_train_end(self, *about: Any, **rest: Any) -> None:
        self._tell()  # the last epoch, if its loss was not logged

    def _tell(self, loss: float | None = None) -> None:
        if self._ended is not None:
            hook.epoch(loss, ended=self._ended, **self._counts)
            self._ended = None
