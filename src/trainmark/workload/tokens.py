"""Windows of a text as network input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainmark.workload.decode import Bounded, Count


@dataclass(frozen=True)
class Tokens(Bounded):
    """Every window of ``length`` tokens is an example; the label of each token is the next one."""

    length: Count
    kind: Literal["tokens"] = "tokens"

    distortions: ClassVar[None] = None
    augment: ClassVar[None] = None

    @property
    def network_shape(self) -> tuple[int, ...]:
        """``(length,)``, whole numbers."""
        return (self.length,)

    @property
    def outputs_shape(self) -> tuple[int, ...]:
        """Shape of the labels of an example."""
        return (self.length,)
