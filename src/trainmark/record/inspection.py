"""Results of inspecting a training step, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

TensorKind = Literal["input", "weight", "activation", "logit", "loss", "gradient"]


@dataclass(frozen=True)
class Tensor:
    """One tensor of the reference's step.

    Args:
        name: name of its layer, or of the weight.
        finite: whether every value is finite.
        largest: largest absolute finite value; 0 if there is none.
        zeros: share of values that are 0.
        dead: after a ReLU, share of units or filters that are 0 for every example; else None.
    """

    kind: TensorKind
    name: str
    finite: bool
    largest: float
    zeros: float
    dead: float | None = None

    @property
    def title(self) -> str:
        """Text such as ``activation relu1``."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class OddExample:
    """A training example for which the backend's loss is not finite, but the reference's is."""

    example: int
    loss: float
    reference: float


@dataclass(frozen=True)
class StepInspection:
    """One step of a backend, next to the reference's from the same weights on the same batch.

    Args:
        loss: the backend's loss.
        tensors: tensors of the reference, in the order of the step.
        gap: the largest difference between the largest and the true logit.
        unchanged: weights that the backend's step did not change at all.
        moved: the largest change of each trained matrix or kernel, relative to its largest value;
            None if not finite.
        alone: examples that make the loss non-finite by themselves.
    """

    step: int
    loss: float
    tensors: tuple[Tensor, ...]
    reference_loss: float | None
    gap: float | None
    bad_labels: tuple[int, ...]
    unchanged: tuple[str, ...]
    finite_after: bool
    moved: Mapping[str, float | None]
    alone: tuple[OddExample, ...]

    @property
    def first_bad(self) -> Tensor | None:
        """The first tensor that is not finite."""
        return next((tensor for tensor in self.tensors if not tensor.finite), None)
