"""A workload: model, data, loss, optimiser, schedule and protocol, as frozen data."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from trainmark.errors import SpecError
from trainmark.workload import layers
from trainmark.workload.decode import Misfit, decode, dotted, require
from trainmark.workload.initializers import Normal
from trainmark.workload.losses import Loss, NegativeLogLikelihood
from trainmark.workload.optimizers import Optimizer, WeightAverage
from trainmark.workload.pixels import Input
from trainmark.workload.published import Published, PublishedRun
from trainmark.workload.schedule import Batches, Metrics, Schedule
from trainmark.workload.tokens import Tokens

_EVALUATION_BATCH = 1000
"""Examples per batch of an evaluation, except of a text."""
_NOT_OF_A_STEP = frozenset({"name", "title", "dataset", "schedule", "metrics", "published"})
"""Fields of a workload that don't affect a step, except for one flag of the metrics."""


@dataclass(frozen=True)
class Workload:
    """What is trained. ``decode(Workload, data)`` reads it, :meth:`to_data` writes it."""

    name: str
    title: str
    dataset: str
    input: Input | Tokens
    model: tuple[layers.Layer, ...]
    loss: Loss
    optimizer: Optimizer
    batches: Batches
    schedule: Schedule
    metrics: Metrics = field(default_factory=Metrics)
    weight_average: WeightAverage | None = None
    published: Published | None = None

    def __post_init__(self) -> None:
        require(bool(self.model), "model", "at least one layer", "none")
        ends_in_log_softmax = isinstance(self.model[-1], layers.LogSoftmax)
        if isinstance(self.loss, NegativeLogLikelihood):
            require(
                ends_in_log_softmax,
                "loss",
                "a last layer 'log-softmax' for the loss 'nll'",
                self.model[-1].kind,
            )
        else:
            require(
                not ends_in_log_softmax,
                "loss",
                "the loss 'nll' after a last layer 'log-softmax'",
                self.loss.kind,
            )
        if self.schedule.pytorch_seed is not None and not self._draws_like_nanogpt:
            expected = (
                "a GPT of normal matrices, without bias, shift and dropout, "
                "last='drop', shuffle='with-replacement', metrics.sample, metrics.before"
            )
            raise Misfit(("schedule", "pytorch_seed"), expected, str(self.schedule.pytorch_seed))

    def to_data(self) -> dict[str, Any]:
        """Return plain data that :func:`decode` reads back and that JSON can represent."""
        return dataclasses.asdict(self)

    @classmethod
    def from_data(cls, data: object) -> Workload:
        """Do the opposite of :meth:`to_data`; raises :class:`~trainmark.workload.decode.Misfit`."""
        return decode(cls, data)

    @property
    def step_fingerprint(self) -> str:
        """Fingerprint of what one step computes.

        It is equal for two workloads with the same arithmetic per step.
        """
        computed = {
            name: value for name, value in _non_defaults(self).items() if name not in _NOT_OF_A_STEP
        }
        return _digest(computed, self.metrics.loss_includes_l2)

    @property
    def schedule_fingerprint(self) -> str:
        """Fingerprint of the number and order of steps and of when the workload is evaluated."""
        return _digest(_non_defaults(self.schedule), self.metrics.train)

    @property
    def is_text(self) -> bool:
        """Whether its examples are windows of a text, so that it predicts tokens."""
        return isinstance(self.input, Tokens)

    @property
    def evaluation_batch(self) -> int:
        """Examples per batch of an evaluation.

        Windows of a text are large, so there are no more than in training.
        """
        size = self.batches.size
        return size if self.is_text and size != "full" else _EVALUATION_BATCH

    @property
    def _draws_like_nanogpt(self) -> bool:
        batches = self.batches
        metrics = self.metrics
        known = all(_drawn_by_nanogpt(layer) for layer in layers.every(self.model))
        in_equal_batches = batches.size != "full" and batches.last == "drop"
        with_replacement = self.schedule.shuffle == "with-replacement"
        evaluates_alike = metrics.sample is not None and metrics.before
        return self.is_text and known and in_equal_batches and with_replacement and evaluates_alike

    @property
    def takes_everything(self) -> bool:
        """Whether every step takes the whole training set in the stored order.

        Only ``augment`` may change it.
        """
        in_order = self.schedule.shuffle == "never" and self.input.distortions is None
        return self.batches.size == "full" and in_order

    @property
    def augmented_input(self) -> Input | None:
        """The input if its images are augmented, else None."""
        return (
            self.input if isinstance(self.input, Input) and self.input.augment is not None else None
        )

    def deterministic(self) -> Workload:
        """Return the workload with only its weights random: no dropout, no distortions."""
        return dataclasses.replace(
            self.without_distortions(), model=layers.changed(self.model, _without_dropout)
        )

    def without_distortions(self) -> Workload:
        """Return the workload with the same images in every epoch."""
        if self.input.distortions is None and self.input.augment is None:
            return self
        return dataclasses.replace(
            self, input=dataclasses.replace(self.input, distortions=None, augment=None)
        )

    def scheduled_as(self, run: PublishedRun) -> Workload:
        """Return this workload with the schedule of a published run."""
        return self.with_schedule(
            epochs=run.epochs if run.epochs is not None else self.schedule.epochs,
            steps=run.steps,
            steps_per_epoch=run.steps_per_epoch,
            pytorch_seed=run.pytorch_seed,
            protocol=run.protocol,
            evaluate=run.evaluate or self.schedule.evaluate,
        )

    def with_schedule(self, **changes: Any) -> Workload:
        """Return this workload with changes to its schedule.

        Raises :class:`~trainmark.errors.SpecError`.
        """
        try:
            return dataclasses.replace(self, schedule=dataclasses.replace(self.schedule, **changes))
        except Misfit as misfit:
            where = f"the schedule of {self.name}, {dotted(misfit.path)}"
            raise SpecError(where, expected=misfit.expected, found=misfit.found) from None


def _drawn_by_nanogpt(layer: layers.Layer) -> bool:
    """Whether ``pytorch_draws`` can draw its initial weights, and it draws nothing else."""
    match layer:
        case layers.Dense():
            return layer.bias == "none" and isinstance(layer.kernel, Normal)
        case layers.TokenEmbedding() | layers.PositionEmbedding():
            return isinstance(layer.table, Normal)
        case layers.Attention():
            return (
                not layer.dropout
                and isinstance(layer.qkv, Normal)
                and isinstance(layer.out, Normal)
            )
        case layers.LayerNorm():
            return not layer.shift
        case _:
            return isinstance(layer, (layers.Residual, layers.Repeat, layers.GELU, layers.TiedHead))


def _without_dropout(layer: layers.Layer) -> layers.Layer | None:
    if isinstance(layer, layers.Attention):
        return dataclasses.replace(layer, dropout=0.0)
    return None if isinstance(layer, (layers.Dropout, layers.ChannelDropout)) else layer


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _non_defaults(part: Any) -> Any:
    """Return plain data of ``part`` without fields at their default.

    So a new field keeps old fingerprints.

    ``kind`` is always kept: it names the class.
    """
    if isinstance(part, tuple):
        return [_non_defaults(item) for item in part]
    if not dataclasses.is_dataclass(part):
        return part
    values = {field: getattr(part, field.name) for field in dataclasses.fields(part)}
    return {
        field.name: _non_defaults(value)
        for field, value in values.items()
        if field.name == "kind" or value != _default(field)
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()
