"""Read the output of `trainmark explain --json`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trainmark import regular
from trainmark.errors import RecordError

MOST_BYTES = 16 << 20
"""Maximum size of a file, in bytes, so that a wrong one doesn't fill the memory."""


class ExplainedPart(msgspec.Struct, frozen=True):
    """A cause and its share of a step, as a fraction."""

    cause: str
    share: float
    low: float | None = None
    high: float | None = None
    on_top: bool = False


class Explained(msgspec.Struct, frozen=True):
    """One explained step; other keys are ignored."""

    workload: str
    backend: str
    style: str
    device: str
    step_seconds: float
    shares: list[ExplainedPart]
    unexplained: float
    caveats: list[str] = []

    @property
    def title(self) -> str:
        """What was explained."""
        return f"{self.workload}: {self.backend} {self.style} {self.device}"

    @property
    def parts(self) -> list[ExplainedPart]:
        """The causes within a step, the largest first and the unexplained part last."""
        inner = [part for part in self.shares if not part.on_top]
        inner.sort(key=lambda part: -part.share)
        return [*inner, ExplainedPart("unexplained", self.unexplained)]


def read_explained(path: Path) -> Explained:
    """Read one file; raises :class:`~trainmark.errors.RecordError`."""
    try:
        return msgspec.json.decode(regular.read(path, MOST_BYTES), type=Explained)
    except (OSError, msgspec.DecodeError) as error:
        raise RecordError(
            f"{path} is not an explanation",
            expected="the output of trainmark explain --json for a workload or a record",
            found=str(error),
        ) from error
