"""A workload: model, data, loss, optimiser, schedule and protocol, as frozen data."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from trainmark.errors import SpecError
from trainmark.workload.decode import Misfit, decode, dotted, require
from trainmark.workload.layers import ChannelDropout, Dropout, Layer, LogSoftmax
from trainmark.workload.losses import Loss, NegativeLogLikelihood
from trainmark.workload.optimizers import Optimizer, WeightAverage
from trainmark.workload.pixels import Input
from trainmark.workload.published import Published, PublishedRun
from trainmark.workload.schedule import Batches, Metrics, Schedule


@dataclass(frozen=True)
class Workload:
    """WHAT is trained. ``decode(Workload, data)`` reads it, :meth:`to_data` writes it."""

    name: str
    title: str
    dataset: str
    input: Input
    model: tuple[Layer, ...]
    loss: Loss
    optimizer: Optimizer
    batches: Batches
    schedule: Schedule
    metrics: Metrics = field(default_factory=Metrics)
    weight_average: WeightAverage | None = None
    published: Published | None = None

    def __post_init__(self) -> None:
        require(bool(self.model), "model", "at least one layer", "none")
        ends_in_log_softmax = isinstance(self.model[-1], LogSoftmax)
        if isinstance(self.loss, NegativeLogLikelihood):
            require(
                ends_in_log_softmax, "loss", "a last layer 'log-softmax' before the loss 'nll'", self.model[-1].kind
            )
        else:
            require(not ends_in_log_softmax, "loss", "the loss 'nll' after a last layer 'log-softmax'", self.loss.kind)

    def to_data(self) -> dict[str, Any]:
        """Plain data that :func:`decode` reads back and JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def from_data(cls, data: object) -> Workload:
        """The opposite of :meth:`to_data`; raises :class:`~trainmark.workload.decode.Misfit`."""
        return decode(cls, data)

    @property
    def step_fingerprint(self) -> str:
        """Names what one step computes: equal for two workloads whose steps are the same arithmetic."""
        metrics = {"loss_includes_l2": self.metrics.loss_includes_l2}
        return _digest(self.input, self.model, self.loss, self.optimizer, self.batches, self.weight_average, metrics)

    @property
    def schedule_fingerprint(self) -> str:
        """Names how many steps are made, in which order, and when is looked at them."""
        schedule = dataclasses.asdict(self.schedule)
        if self.schedule.until is None:
            del schedule["until"]  # what older records were made without
        return _digest(schedule, self.metrics.train)

    @property
    def takes_everything(self) -> bool:
        """Whether every step takes the whole training set as it is stored."""
        return self.batches.size == "full" and self.schedule.shuffle == "never"

    def deterministic(self) -> Workload:
        """The same workload with nothing left to chance but the weights: no dropout, no distortions."""
        return dataclasses.replace(
            self,
            model=tuple(layer for layer in self.model if not isinstance(layer, (Dropout, ChannelDropout))),
            input=dataclasses.replace(self.input, distortions=None),
        )

    def scheduled_as(self, run: PublishedRun) -> Workload:
        """This workload with the schedule of a published run."""
        return self.with_schedule(
            epochs=run.epochs if run.epochs is not None else self.schedule.epochs,
            steps=run.steps,
            steps_per_epoch=None,
            protocol=run.protocol,
            evaluate=run.evaluate or self.schedule.evaluate,
        )

    def with_schedule(self, **changes: Any) -> Workload:
        """This workload with some fields of its schedule changed; raises :class:`~trainmark.errors.SpecError`."""
        try:
            return dataclasses.replace(self, schedule=dataclasses.replace(self.schedule, **changes))
        except Misfit as misfit:
            where = f"the schedule of {self.name}, {dotted(misfit.path)}"
            raise SpecError(where, expected=misfit.expected, found=misfit.found) from None


def _digest(*parts: Any) -> str:
    text = json.dumps([_plain(part) for part in parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(part: Any) -> Any:
    if isinstance(part, tuple):
        return [_plain(item) for item in part]
    return dataclasses.asdict(part) if dataclasses.is_dataclass(part) and not isinstance(part, type) else part
