"""What an observed loss that did not fall means, next to the other sides of the same script."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from trainmark.analysis.summary import RunSummary
from trainmark.record.caveats import Caveat


def judge_flat_losses(sides: Sequence[tuple[RunSummary, ...]]) -> list[tuple[RunSummary, ...]]:
    """Return the runs of each side, where those that do not learn have the caveat for it.

    A script whose loss falls in all runs of some side shows by it that it learns. If it then falls
    in no run of another side, that side does not learn. Otherwise a loss that does not fall says
    nothing: the script may train a GAN or an agent.

    Args:
        sides: the runs of each side of one workload.
    """
    shows_learning = any(runs and all(run.loss_fell is True for run in runs) for runs in sides)
    if not shows_learning:
        return list(sides)
    return [
        tuple(map(_not_learning, runs))
        if runs and all(run.loss_fell is False for run in runs)
        else runs
        for runs in sides
    ]


def _not_learning(run: RunSummary) -> RunSummary:
    caveats = run.caveats - {Caveat.LEARNING_UNSEEN} | {Caveat.NOT_LEARNING}
    return dataclasses.replace(run, caveats=frozenset(caveats))
