"""How fast a training would be on many devices: a step's own time, and what the sum of gradients takes.

The sum of ``n`` bytes over ``p`` devices costs ``2·h·α + 2·(p-1)/p·n·β`` seconds: every byte is sent and received
about twice, whatever the number of devices, and a message costs α however short it is (Thakur, Rabenseifner and Gropp
2005). A ring takes ``h = p - 1`` hops each way, a tree or recursive halving ``h = log2 p`` (rounded up).

Nothing overlaps in this model: engines send the gradients of the last layers while those of the first are computed,
so a step may be faster than predicted where there is much to send and somebody else than the device sends it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trainmark.errors import SumsLost

MOST_DEVICES = 4096
PAYS_FROM = 0.5
"""The efficiency below which more than half of the devices' time is waiting."""
ROUGH_FROM = 0.25
"""Of a sum that was measured: where the fit misses one by more, so may the prediction."""
_LOST_FROM = 1.0
"""Where it misses one by as much as all of it, there is no line."""
_FEWEST_SIZES = 3

Hops = Literal["ring", "tree"]


@dataclass(frozen=True)
class Link:
    """What messages between devices cost.

    Args:
        alpha_seconds: of a message, however short.
        beta_seconds_per_byte: on top of it; its inverse is the bandwidth.
        hops: how the sum goes round.
        source: where the figures come from, for people.
        largest_error: of the fit, relative, over the sizes that were measured; None where nothing was.
    """

    alpha_seconds: float
    beta_seconds_per_byte: float
    hops: Hops
    source: str
    largest_error: float | None = None

    @property
    def bytes_per_second(self) -> float:
        """The bandwidth."""
        return 1 / self.beta_seconds_per_byte

    @property
    def is_rough(self) -> bool:
        """Whether the line does not go through what was measured."""
        return self.largest_error is not None and self.largest_error > ROUGH_FROM

    def all_reduce_seconds(self, size: float, ranks: int, messages: int = 1) -> float:
        """Of the sum of ``size`` bytes over ``ranks`` devices, in so many messages; nothing for one."""
        if ranks == 1:
            return 0.0
        latency = messages * 2 * _hops(self.hops, ranks) * self.alpha_seconds
        return latency + 2 * _share(ranks) * size * self.beta_seconds_per_byte

    def send_seconds(self, size: float) -> float:
        """Of one message."""
        return self.alpha_seconds + size * self.beta_seconds_per_byte


@dataclass(frozen=True)
class StepCost:
    """Seconds of a training step on one device by the size of its batch: measured for some, fitted for others.

    Args:
        fixed_seconds: of a step without examples.
        seconds_per_example: on top of it.
        measured: seconds by examples.
    """

    fixed_seconds: float
    seconds_per_example: float
    measured: Mapping[int, float]

    def seconds(self, examples: int) -> float:
        """Of a step of so many examples."""
        return self.measured.get(examples, self.fixed_seconds + examples * self.seconds_per_example)


@dataclass(frozen=True)
class Network:
    """What of a network the model needs.

    Args:
        gradient_bytes: of all its weights.
        messages: that their sum goes in, as the engine packs them.
        longest_stage: share of a step's work that the longest of so many stages has; by their number.
        widest_edge_bytes: an example's activations at the widest cut between stages; by their number.
    """

    gradient_bytes: int
    messages: int
    longest_stage: Mapping[int, float]
    widest_edge_bytes: Mapping[int, int]


@dataclass(frozen=True)
class Predicted:
    """One layout.

    Args:
        data, pipeline: copies, and stages of each.
        batch: examples of a step, of all copies together.
        efficiency: samples per second and device, as a share of one device's.
        communication: share of the step that goes into the sum of gradients.
    """

    data: int
    pipeline: int
    batch: int
    step_seconds: float
    samples_per_second: float
    efficiency: float
    communication: float


@dataclass(frozen=True)
class ScalingModel:
    """Everything that a prediction is made of.

    Args:
        batch: examples of a step on one device.
    """

    step: StepCost
    link: Link
    network: Network
    batch: int

    def predict(self, data: int, pipeline: int = 1, microbatches: int = 1, *, weak: bool = False) -> Predicted:
        """A layout. ``weak``: every copy has the whole batch, instead of its share of one."""
        batch = self.batch * data if weak else self.batch
        own = -(-batch // data)  # the copy with the largest share decides
        compute = self.step.seconds(own) if pipeline == 1 else self._pipeline_seconds(own, pipeline, microbatches)
        gradients = self.network.gradient_bytes * self.network.longest_stage.get(pipeline, 1.0)
        talk = self.link.all_reduce_seconds(gradients, data, self.network.messages)
        seconds = compute + talk
        rate, alone = batch / seconds, self.batch / self.step.seconds(self.batch)
        return Predicted(data, pipeline, batch, seconds, rate, rate / (data * pipeline * alone), talk / seconds)

    def curve(self, *, weak: bool) -> tuple[Predicted, ...]:
        """1, 2, 4, ... copies, up to :data:`MOST_DEVICES`; strong, as long as every copy has an example."""
        most = MOST_DEVICES if weak else min(MOST_DEVICES, self.batch)
        return tuple(self.predict(2**power, weak=weak) for power in range(int(math.log2(most)) + 1))

    def _pipeline_seconds(self, examples: int, stages: int, microbatches: int) -> float:
        """GPipe: ``m`` pieces through ``p`` stages take ``m + p - 1`` times as long as one through the longest."""
        piece = examples / microbatches
        fixed, each = self.step.fixed_seconds, self.step.seconds_per_example
        work = (fixed + piece * each) * self.network.longest_stage[stages]
        edge = 2 * self.link.send_seconds(
            piece * self.network.widest_edge_bytes[stages]
        )  # there, and its gradient back
        return (microbatches + stages - 1) * (work + edge)


def pays_up_to(curve: Sequence[Predicted]) -> int:
    """The most devices with an efficiency of :data:`PAYS_FROM` at least, none before them below it."""
    most = 1
    for each in curve:
        if each.efficiency < PAYS_FROM:
            break
        most = each.data * each.pipeline
    return most


def fastest(curve: Sequence[Predicted]) -> int:
    """The devices with the most samples per second; more only make it slower."""
    best = max(curve, key=lambda each: each.samples_per_second)
    return best.data * best.pipeline


def fit_link(timings: Mapping[int, Sequence[float]], ranks: int, hops: Hops, source: str) -> Link:
    """α and β from measured sums.

    Args:
        timings: seconds by bytes, of several rounds.
        ranks: over which they were summed.

    Raises:
        SumsLost: they are lost in the noise.
    """
    medians = {size: statistics.median(seconds) for size, seconds in timings.items()}
    sizes = sorted(size for size, seconds in medians.items() if seconds > 0)  # differences of noisy times may be below
    if len(sizes) < _FEWEST_SIZES:
        raise _lost(f"{_FEWEST_SIZES} sizes or more that take longer than nothing", str(len(sizes)))
    seconds = [medians[size] for size in sizes]
    fixed, slope = _fit(sizes, seconds)
    alpha, beta = fixed / (2 * _hops(hops, ranks)), slope / (2 * _share(ranks))
    link = Link(alpha, beta, hops, source)
    errors = [abs(link.all_reduce_seconds(size, ranks) / took - 1) for size, took in zip(sizes, seconds, strict=True)]
    if max(errors) >= _LOST_FROM:
        raise _lost("sums on a line", f"a line that misses one by {100 * max(errors):.0f} %")
    return Link(alpha, beta, hops, source, max(errors))


def _lost(expected: str, found: str) -> SumsLost:
    return SumsLost(
        "all-reduces are lost in the noise of the work before them",
        expected=expected,
        found=found,
        fix="Try again on a quieter machine, or give --link.",
    )


def fit_step(measured: Mapping[int, float]) -> StepCost:
    """The cost of a step from measured ones, of two batch sizes at least."""
    sizes = sorted(measured)
    fixed, slope = _fit(sizes, [measured[size] for size in sizes])
    return StepCost(fixed, slope, dict(measured))


def _fit(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """The line of least relative squares; neither its start nor its slope below what is next to nothing."""
    x, y = np.array(sizes, dtype=float), np.array(seconds)
    columns = np.stack([1 / y, x / y], axis=1)
    fixed, slope = np.linalg.lstsq(columns, np.ones(len(x)), rcond=None)[0]
    if slope <= 0:
        return float(np.exp(np.log(y).mean())), 1e-15
    if fixed <= 0:
        return 1e-9, float(np.exp(np.log(y / x).mean()))
    return float(fixed), float(slope)


def _hops(hops: Hops, ranks: int) -> int:
    return ranks - 1 if hops == "ring" else math.ceil(math.log2(ranks))


def _share(ranks: int) -> float:
    return (ranks - 1) / ranks
