"""A layout for a workload: whether its batch and its network can be divided so, and into how many pieces."""

from __future__ import annotations

from typing import Literal

from trainmark.backends.layout import Layout
from trainmark.data.locate import Located
from trainmark.errors import Unsupported, UsageError
from trainmark.execute.parent.plan import Side
from trainmark.workload.model import lay_out
from trainmark.workload.precision import PRECISIONS, listed
from trainmark.workload.spec import Workload
from trainmark.workload.stages import cut

DEFAULT_MICROBATCHES = 4
_PATIENCE_SECONDS = 20.0


def layout_of(
    workload: Workload,
    data: int,
    stages: int,
    microbatches: int | None = None,
    *,
    weak: bool = False,
    crowd: int | None = None,
) -> Layout:
    """``data`` copies of ``stages`` stages.

    Args:
        microbatches: of a pipeline; None chooses.
        weak: every copy has the workload's whole batch.
        crowd: ranks that may have to share the cores, so that one has to wait longer for the others; None is all.
    """
    pieces = 1 if stages == 1 else microbatches or _microbatches(workload, data, weak=weak)
    return Layout(data, stages, pieces, patience=_PATIENCE_SECONDS * max(1, crowd or data * stages))


def require_able(side: Side, stages: int, spreads: Literal["processes", "devices"] | None) -> None:
    """Raise :class:`~trainmark.errors.Unsupported` where a backend can't spread a training so.

    Args:
        spreads: by what its backend does; see :class:`~trainmark.backends.base.Capabilities`.
    """
    if spreads == "devices" and (stages > 1 or side.style != "fast"):
        raise Unsupported(
            f"{side.backend} spreads copies over the devices of one machine only, in the style fast",
            expected="the backend torch for stages and other styles",
        )
    if side.style == "compiled":
        raise Unsupported(f"{side.backend} does not scale the style 'compiled'", fix="Use --style fast or idiomatic.")
    if stages > 1 and PRECISIONS[side.precision].mixed:
        raise Unsupported(
            f"{side.backend} does not cut a network into stages in {side.precision}", expected=listed(mixed=False)
        )


def require_divisible(
    workload: Workload, data: int, stages: int, microbatches: int | None = None, *, weak: bool = False
) -> None:
    """Raise :class:`~trainmark.errors.UsageError` where the batch or the network can't be divided so.

    A batch of the whole dataset is another matter: see :func:`require_shareable`.
    """
    cut(lay_out(workload), stages)
    batch = workload.batches.size
    if batch == "full":
        if weak:
            raise UsageError(
                f"a step of {workload.name} uses the whole dataset, so its batch can't grow",
                fix="Give --batch-size, or leave out --weak.",
            )
        if stages > 1:
            raise Unsupported("a pipeline needs a fixed batch size", fix="Give --batch-size.")
        return
    if not weak and batch % data:
        raise UsageError(
            f"a batch of {batch} can't be shared by {data} copies",
            expected=f"a number of copies that divides {batch}",
            found=str(data),
            fix=f"Use a batch of {-(-batch // data) * data}, or give every copy its own batch (scale --weak).",
        )
    share = batch if weak else batch // data
    if stages > 1 and microbatches is not None and share % microbatches:
        raise UsageError(
            f"a copy's {share} examples can't be cut into {microbatches} microbatches",
            expected=f"--microbatches that divides {share}",
            found=str(microbatches),
        )


def require_shareable(workload: Workload, data: int, dataset: Located) -> None:
    """Raise :class:`~trainmark.errors.UsageError` where a step takes the whole dataset and that can't be shared."""
    if workload.batches.size == "full" and dataset.train_examples % data:
        raise UsageError(
            f"the {dataset.train_examples:,} examples of {dataset.name} can't be shared by {data} copies",
            expected=f"a number of copies that divides {dataset.train_examples:,}",
            found=str(data),
        )


def _microbatches(workload: Workload, data: int, *, weak: bool) -> int:
    """As many as divide a copy's share, up to the usual number."""
    size = workload.batches.size
    assert size != "full"
    share = size if weak else size // data
    return next(count for count in range(DEFAULT_MICROBATCHES, 0, -1) if share % count == 0)
