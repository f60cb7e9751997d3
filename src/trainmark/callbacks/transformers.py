"""For ``Trainer(callbacks=[Epochs()])`` of Hugging Face's Transformers."""

from __future__ import annotations

import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainmark import hook


class Epochs(TrainerCallback):
    """Reports every epoch; an evaluation behind it is its test.

    The loss is the mean that the trainer logs next, so ``logging_strategy="epoch"`` gives that of the epoch.
    """

    def __init__(self) -> None:
        self._first_step = 0
        self._ended: float | None = None
        self._counts = {"examples": 0, "steps": 0}

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any
    ) -> None:
        """The first step comes."""
        self._tell()
        self._first_step = state.global_step
        hook.begin()

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        """The training of the epoch is over; its loss will be logged."""
        steps = state.global_step - self._first_step
        examples = steps * args.train_batch_size * args.gradient_accumulation_steps
        self._ended, self._counts = time.perf_counter(), {"examples": examples, "steps": steps}

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **rest: Any,
    ) -> None:
        """Now it is."""
        if logs and "loss" in logs:
            self._tell(logs["loss"])

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, float] | None = None,
        **rest: Any,
    ) -> None:
        """The test behind the epoch is over; one in the middle of it is part of it."""
        between = state.global_step == self._first_step + self._counts["steps"]
        self._tell()
        if between and metrics:
            hook.test(metrics.get("eval_loss"), metrics.get("eval_accuracy"))

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        """Nothing more will be logged."""
        self._tell()

    def _tell(self, loss: float | None = None) -> None:
        if self._ended is not None:
            hook.epoch(loss, ended=self._ended, **self._counts)
            self._ended = None
