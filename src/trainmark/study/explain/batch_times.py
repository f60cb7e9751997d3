"""Seconds of a step by batch size, all sizes interleaved in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from trainmark.analysis.statistics import lower_quartile
from trainmark.backends.base import Options
from trainmark.execute.protocol.answers import Answer, RoundTimed, of_kind
from trainmark.execute.protocol.requests import Dissect, Variant
from trainmark.study.chosen import ChosenSide
from trainmark.workload.reduce import with_batch

_ROUNDS = 5
_LEAST_STRETCH, _MOST_STRETCH = 0.05, 8.0


def interleaved(chosen: ChosenSide, variants: Sequence[Variant], seconds: float, rounds: int) -> Dissect:
    """The request to time ``variants`` for about ``seconds``."""
    return Dissect(
        backend=chosen.side.backend,
        dataset=chosen.course.dataset.folder,
        variants=tuple(variants),
        window=seconds / (rounds * len(variants)),
        budget=seconds,
        rounds=rounds,
    )


def rounds_in(heard: Iterable[Answer]) -> list[dict[str, float]]:
    """Seconds of a step, by variant, of each round."""
    return [answer.seconds for answer in of_kind(heard, RoundTimed)]


def seconds_by_batch(
    chosen: ChosenSide,
    options: Options,
    sizes: Sequence[int],
    seconds: float,
    ask: Callable[[Dissect], list[Answer]],
) -> dict[int, float]:
    """Seconds of a step by batch size; sizes that failed, or finished too quickly to time, are left out.

    Args:
        sizes: of the batch; a timed stretch has about as many examples as that of the first one.
        seconds: of measuring, about.
        ask: sends the request to a new process.
    """
    workload = chosen.course.workload
    variants = [
        Variant(
            f"{size} examples",
            with_batch(workload, size),
            options,
            stretch=min(max(sizes[0] / size, _LEAST_STRETCH), _MOST_STRETCH),
        )
        for size in sizes
    ]
    rounds = rounds_in(ask(interleaved(chosen, variants, seconds, _ROUNDS)))
    names = {size: variant.name for size, variant in zip(sizes, variants, strict=True)}
    took = {size: lower_quartile([each[name] for each in rounds]) for size, name in names.items() if name in rounds[0]}
    return {size: each for size, each in took.items() if each > 0}
