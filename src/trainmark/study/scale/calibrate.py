"""What a prediction is made of, measured before anything is run on several devices: a message, and a step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial

from trainmark.analysis.scaling_model import Hops, Link, Network, StepCost, fit_link, fit_step
from trainmark.backends.layout import Layout, Rendezvous
from trainmark.errors import ScalingFailed, SumsLost
from trainmark.execute.parent.plan import Side, Spreading
from trainmark.execute.protocol.answers import Answer, CollectivesTimed, of_kind
from trainmark.execute.protocol.requests import Dissect, StartRanks, TimeCollectives
from trainmark.study.batch_times import seconds_by_batch
from trainmark.study.chosen import ChosenSide
from trainmark.study.progress import Tell
from trainmark.workload.model import Model
from trainmark.workload.precision import PRECISIONS
from trainmark.workload.stages import cut

_STEP_SECONDS = 6.0
_HALVINGS = 4
_SHARES_OF_SIZE = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)
_PATIENCE_SECONDS = 60.0
_TRIES = 3
_BUCKET_BYTES = (2**20, 25 * 2**20)
"""Of DDP, by default: the first one, and the others."""


def measure_link(chosen: ChosenSide, rendezvous: Rendezvous, size: int, tell: Tell, *, processes: bool) -> Link:
    """What an all-reduce over the fewest possible devices takes, by its size.

    Args:
        size: bytes of the gradients; the line is fitted to sizes around it, since larger ranges are not linear.

    Raises:
        ScalingFailed: the ranks could not be started, or did not find each other.
    """
    side = chosen.side
    ranks = max(2, rendezvous.nodes)
    layout = Layout(data=ranks, patience=_PATIENCE_SECONDS)
    sizes = tuple(max(4, int(size * share)) for share in _SHARES_OF_SIZE)
    options = dataclasses.replace(chosen.options(), layout=layout)
    sums = TimeCollectives(side.backend, options, sizes, chosen.course.model.arrays)
    place = dataclasses.replace(rendezvous, name="trainmark-collectives")
    request = Spreading(layout, rendezvous=place).launch(sums) if processes else sums
    hops: Hops = "ring" if side.device == "cpu" and processes else "tree"

    def measured() -> Link:
        heard = _ask(chosen, request)
        timed = next(iter(of_kind(heard, CollectivesTimed)), None)
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


def measure_step(chosen: ChosenSide, batches: set[int], tell: Tell) -> StepCost:
    """Seconds of a step on one device with batches of several sizes.

    Args:
        batches: the wanted sizes; smaller ones are added, to find the time of a step without examples.

    Raises:
        ScalingFailed: the process died.
    """
    largest = max(batches)
    sizes = sorted({*batches, *(largest >> power for power in range(_HALVINGS) if largest >> power)}, reverse=True)
    options = dataclasses.replace(chosen.options(), layout=Layout())
    tell("timing steps on one device", 0.3)
    return fit_step(seconds_by_batch(chosen, options, sizes, _STEP_SECONDS, partial(_ask, chosen)))


def network_of(model: Model, side: Side, stages: set[int], *, processes: bool) -> Network:
    """What the model needs to know of the network, for so many stages."""
    width = PRECISIONS[side.precision].value_bytes
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


def _ask(chosen: ChosenSide, request: StartRanks | TimeCollectives | Dissect) -> list[Answer]:
    heard, ending = chosen.ask(request)
    if ending.status != "done":
        raise ScalingFailed(f"{request.backend} can't be timed on several devices", found=ending.reason or "no answer")
    return heard
