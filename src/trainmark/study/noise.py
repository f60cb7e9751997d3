"""Compare a training with itself: what a machine shows when there is no difference."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from trainmark.analysis.noise import Noise, noise_of
from trainmark.errors import NoiseFailed
from trainmark.record.store import Store
from trainmark.study.chosen import ChosenSide
from trainmark.study.observer import StudyObserver
from trainmark.study.pair import compare_settings
from trainmark.study.rounds import Budget

LABELS = ("A", "B")


def measure(
    chosen: ChosenSide,
    store: Store,
    progress: StudyObserver,
    budget: Budget,
    labels: Mapping[str, str] | None = None,
) -> Noise:
    """Compare ``chosen`` with itself until the budget is spent.

    Raises:
        NoiseFailed: nothing could be compared.
    """
    running = partial(progress.running, folder=store.folder, resumes=False)
    start = time.perf_counter()
    with store.locked():
        sides = dict.fromkeys(LABELS, chosen.settings)
        one, other = compare_settings(
            chosen, sides, store, running, budget, progress.message, labels
        )
    seconds = time.perf_counter() - start
    found = noise_of(one, other, seconds, budget.margin)
    if found is None:
        failed = [record for record in [*one, *other] if record.outcome.status != "ok"]
        reason = failed[0].outcome.reason if failed else None
        raise NoiseFailed(
            f"{chosen.side.title} can't be compared with itself",
            found=reason or "no slice in common",
        )
    return found
