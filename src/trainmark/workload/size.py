"""A smaller network of the same kind: ``--size``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from trainmark.errors import UsageError
from trainmark.workload.decode import Misfit, dotted
from trainmark.workload.layers import Layer, PositionEmbedding, Repeat, changed, every
from trainmark.workload.model import lay_out
from trainmark.workload.pixels import Input
from trainmark.workload.reduce import reduced
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens


@dataclass(frozen=True)
class Size:
    """The sizes to change; None keeps the workload's.

    Args:
        width: width of the first layer with weights; the others, and the heads, shrink in
            proportion.
        depth: largest number of repetitions of a repeated layer.
        batch: examples per step.
        length: context length, in tokens.
        crop: side of the cropped image.
    """

    width: int | None = None
    depth: int | None = None
    batch: int | None = None
    length: int | None = None
    crop: int | None = None

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value}" for name, value in vars(self).items() if value is not None
        )

    def of(self, workload: Workload) -> Workload:
        """Return ``workload`` in this size, under a name that says so.

        Raises UsageError if it doesn't fit.
        """
        self._require_parts(workload)
        given = workload.input
        try:
            if isinstance(given, Tokens):
                given = Tokens(self.length or given.length)
            elif self.crop is not None:
                given = dataclasses.replace(given, crop=self.crop)
            sized = dataclasses.replace(
                reduced(workload, self.width, self.depth),
                name=f"{workload.name} ({self})",
                input=given,
                batches=dataclasses.replace(
                    workload.batches, size=self.batch or workload.batches.size
                ),
                published=None,  # its figures apply to the whole network
            )
            if self.length is not None:
                sized = dataclasses.replace(sized, model=changed(sized.model, self._with_positions))
            lay_out(sized)
        except Misfit as misfit:
            where = f" at {dotted(misfit.path)}" if misfit.path else ""
            raise UsageError(
                f"{workload.name} can't have the size {self}{where}",
                expected=misfit.expected,
                found=misfit.found,
            ) from misfit
        return sized

    def _with_positions(self, layer: Layer) -> Layer:
        if self.length is not None and isinstance(layer, PositionEmbedding):
            return dataclasses.replace(layer, length=self.length)
        return layer

    def _require_parts(self, workload: Workload) -> None:
        lacking = {
            "depth": any(isinstance(layer, Repeat) for layer in every(workload.model))
            or "no repeated layers",
            "length": isinstance(workload.input, Tokens) or "images, not text",
            "crop": isinstance(workload.input, Input) or "text, not images",
        }
        for name, why in lacking.items():
            if getattr(self, name) is not None and why is not True:
                raise UsageError(
                    f"--size {name} doesn't apply to {workload.name}",
                    found=f"a workload with {why}",
                )
