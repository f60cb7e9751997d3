"""What a prediction is made of, measured before anything is run on several devices: a message, and a step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

from trainmark.analysis.scaling_model import BYTES_PER_WEIGHT, Hops, Link, Network, StepCost, fit_link, fit_step
from trainmark.analysis.statistics import lower_quartile
from trainmark.backends.layout import Layout, Rendezvous
from trainmark.errors import ScalingFailed, SumsLost
from trainmark.execute.parent.plan import Course, Side, Spreading
from trainmark.execute.parent.process import converse
from trainmark.execute.protocol.answers import Answer, CollectivesTimed, RoundTimed
from trainmark.execute.protocol.requests import Dissect, Launch, TimeCollectives, Variant
from trainmark.workload.model import Model
from trainmark.workload.reduce import with_batch
from trainmark.workload.stages import cut

Tell = Callable[[str, float], None]
_STEP_SECONDS, _STEP_ROUNDS = 6.0, 5
_HALVINGS = 4
_SHARES_OF_SIZE = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)
_PATIENCE_SECONDS = 60.0
_TRIES = 3
_WIDE_WEIGHT_BYTES = {"fp64": 8}
_BUCKET_BYTES = (2**20, 25 * 2**20)
"""Of DDP, by default: the first one, and the others."""


def measure_link(
    size: int,
    arrays: int,
    side: Side,
    threads: int | None,
    seed: int,
    rendezvous: Rendezvous,
    *,
    processes: bool,
    tell: Tell,
    timeout: float | None,
) -> Link:
    """What a sum over the fewest devices that make one takes, by its size.

    Args:
        size: bytes of the gradients; the line is fitted to sizes around it, for over more of them it is none.
        arrays: in which they are.

    Raises:
        ScalingFailed: they could not be started, or did not find each other.
    """
    ranks = max(2, rendezvous.nodes)
    layout = Layout(data=ranks, patience=_PATIENCE_SECONDS)
    sizes = tuple(max(4, int(size * share)) for share in _SHARES_OF_SIZE)
    sums = TimeCollectives(side.backend, side.options(seed, threads, layout=layout), sizes, arrays)
    place = dataclasses.replace(rendezvous, name="trainmark-collectives")
    request = Spreading(layout, rendezvous=place).launch(sums) if processes else sums
    hops: Hops = "ring" if side.device == "cpu" and processes else "tree"

    def measured() -> Link:
        heard = _ask(side.interpreter.path, request, threads, timeout)
        timed = next((answer for answer in heard if isinstance(answer, CollectivesTimed)), None)
        if timed is None:
            raise ScalingFailed(f"{side.backend} did not time its all-reduce", found="no answer")
        by_size = {each.bytes: list(each.seconds) for each in timed.timings}
        return fit_link(by_size, ranks, hops, f"measured over {ranks} devices")

    tell(f"timing sums over {ranks} devices", 0.0)
    # Several machines would have to agree to try again.
    return _best_of(_TRIES if rendezvous.nodes == 1 else 1, measured)


def _best_of(tries: int, measured: Callable[[], Link]) -> Link:
    """The first link whose line goes through what was measured; of rough ones, which a busy machine gives, the best."""
    links: list[Link] = []
    for left in reversed(range(tries)):
        try:
            links.append(measured())
        except SumsLost:
            if not left and not links:
                raise
        else:
            if not links[-1].is_rough:
                break
    return min(links, key=lambda link: link.largest_error or 0.0)


def measure_step(
    course: Course, side: Side, threads: int | None, seed: int, batches: set[int], tell: Tell, timeout: float | None
) -> StepCost:
    """Seconds of a step on one device with batches of several sizes, timed in turns in one process.

    Args:
        batches: sizes that are asked for; smaller ones are added, to see what a step without examples takes.

    Raises:
        ScalingFailed: the process died.
    """
    largest = max(batches)
    sizes = sorted({*batches, *(largest >> power for power in range(_HALVINGS) if largest >> power)}, reverse=True)
    options = side.options(seed, threads, layout=Layout())
    variants = tuple(
        Variant(str(size), with_batch(course.workload, size), options, stretch=min(largest / size, 8.0))
        for size in sizes
    )
    request = Dissect(
        side.backend,
        course.dataset.folder,
        variants,
        window=_STEP_SECONDS / (_STEP_ROUNDS * len(variants)),
        budget=2 * _STEP_SECONDS,
        rounds=_STEP_ROUNDS,
        sitting=1,  # no evaluation
    )
    tell("timing steps on one device", 0.3)
    heard = _ask(side.interpreter.path, request, threads, timeout)
    rounds = [answer.seconds for answer in heard if isinstance(answer, RoundTimed)]
    measured = {size: lower_quartile([each[str(size)] for each in rounds]) for size in sizes if str(size) in rounds[0]}
    return fit_step({size: seconds for size, seconds in measured.items() if seconds > 0})


def network_of(model: Model, side: Side, stages: set[int], *, processes: bool) -> Network:
    """What the model needs to know of the network, for so many stages."""
    width = _WIDE_WEIGHT_BYTES.get(side.precision, BYTES_PER_WEIGHT)
    total = sum(plan.training_macs for plan in model.layers)
    longest, edges = {}, {}
    for count in stages:
        parts = cut(model, count)
        longest[count] = max(sum(plan.training_macs for plan in part) for part in parts) / total
        edges[count] = max((width * math.prod(part[-1].output_shape) for part in parts[:-1]), default=0)
    messages = _buckets(model, width) if processes else 1
    return Network(width * model.parameters, messages, longest, edges)


def _buckets(model: Model, width: int) -> int:
    """Into how many DDP packs the gradients, last layer first; its first one is small, so that it can start early."""
    limits, count, filled = iter(_BUCKET_BYTES), 0, 0
    limit = next(limits)
    for plan in reversed(model.weighted_layers):
        kernel = math.prod(plan.kernel_shape or ())
        for values in (plan.parameters - kernel, kernel):
            filled += width * values
            if filled >= limit:
                count, filled, limit = count + 1, 0, next(limits, limit)
    return count + (filled > 0)


def _ask(
    python: Path, request: Launch | TimeCollectives | Dissect, threads: int | None, timeout: float | None
) -> list[Answer]:
    heard: list[Answer] = []
    ending = converse(python, lambda _: request, hear=heard.append, threads=threads, timeout=timeout)
    if ending.status != "done":
        raise ScalingFailed(f"{request.backend} can't be timed on several devices", found=ending.reason or "no answer")
    return heard
