"""Windows of a text as the network's input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainmark.workload.decode import Bounded, Count


@dataclass(frozen=True)
class Tokens(Bounded):
    """Examples are all windows of ``length`` tokens; the label of each token is the one after it."""

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
        """Axes of the labels of an example."""
        return (self.length,)
