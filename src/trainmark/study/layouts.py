"""A layout for a workload: whether its batch and its network can be divided, and how."""

from __future__ import annotations

from typing import Literal

from trainmark.backends.base import kinds_of
from trainmark.backends.layout import Layout
from trainmark.data.locate import Located
from trainmark.errors import Unsupported, UsageError
from trainmark.execute.parent.plan import Side
from trainmark.workload.model import lay_out
from trainmark.workload.precision import PRECISIONS, listed
from trainmark.workload.spec import Workload
from trainmark.workload.stages import cut

DEFAULT_MICROBATCHES = 4
"""Maximum number of microbatches that is chosen for a pipeline."""
_PATIENCE_SECONDS = 20.0
"""Seconds that a rank waits for the others, for each rank that shares the cores."""
_UNCUT = {"batch-norm", "clipping", "sum"}
"""These need the whole batch or all gradients at once."""


def layout_of(
    workload: Workload,
    data: int,
    stages: int,
    microbatches: int | None = None,
    *,
    weak: bool = False,
    crowd: int | None = None,
) -> Layout:
    """Return the layout with ``data`` copies of ``stages`` stages each.

    Args:
        microbatches: of a pipeline; None chooses.
        weak: every copy has the workload's whole batch.
        crowd: number of ranks that may share the cores and so wait longer for each other; None is
            all.
    """
    pieces = 1 if stages == 1 else microbatches or _microbatches(workload, data, weak=weak)
    return Layout(data, stages, pieces, patience=_PATIENCE_SECONDS * max(1, crowd or data * stages))


def require_able(side: Side, stages: int, spreads: Literal["processes", "devices"] | None) -> None:
    """Raise :class:`~trainmark.errors.Unsupported` if a backend can't spread a training like this.

    Args:
        spreads: how its backend spreads a training; see
            :class:`~trainmark.backends.base.Capabilities`.
    """
    if spreads == "devices" and (stages > 1 or side.style != "fast"):
        raise Unsupported(
            f"{side.backend} can only spread copies over the devices of one machine, in the "
            "style fast",
            expected="the backend torch for stages and other styles",
        )
    if side.style == "compiled":
        raise Unsupported(
            f"{side.backend} does not scale the style 'compiled'",
            fix="Use --style fast or idiomatic.",
        )
    if stages > 1 and PRECISIONS[side.precision].mixed:
        problem = f"{side.backend} does not split a network into stages in {side.precision}"
        raise Unsupported(problem, expected=listed(mixed=False))


def require_divisible(
    workload: Workload,
    data: int,
    stages: int,
    microbatches: int | None = None,
    *,
    weak: bool = False,
) -> None:
    """Raise :class:`~trainmark.errors.UsageError` if batch or network can't be divided like this.

    :func:`require_shareable` handles a batch of the whole dataset.
    """
    if stages > 1:
        unfit = _UNCUT & set(kinds_of(workload))
        if unfit:
            raise Unsupported(f"a network with {', '.join(sorted(unfit))} can't be cut into stages")
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
            fix=f"Use a batch of {-(-batch // data) * data}, or give every copy its own batch "
            "(scale --weak).",
        )
    share = batch if weak else batch // data
    if stages > 1 and microbatches is not None and share % microbatches:
        raise UsageError(
            f"a copy's {share} examples can't be split into {microbatches} microbatches",
            expected=f"--microbatches that divides {share}",
            found=str(microbatches),
        )


def require_shareable(workload: Workload, data: int, dataset: Located) -> None:
    """Raise :class:`~trainmark.errors.UsageError` if copies can't share a whole dataset a step."""
    if workload.batches.size == "full" and dataset.train_examples % data:
        raise UsageError(
            f"the {dataset.train_examples:,} examples of {dataset.name} can't be shared by "
            f"{data} copies",
            expected=f"a number of copies that divides {dataset.train_examples:,}",
            found=str(data),
        )


def _microbatches(workload: Workload, data: int, *, weak: bool) -> int:
    """Return the largest number, up to the default, that divides a copy's share."""
    size = workload.batches.size
    assert size != "full"
    share = size if weak else size // data
    return next(count for count in range(DEFAULT_MICROBATCHES, 0, -1) if share % count == 0)
