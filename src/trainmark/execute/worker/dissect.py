"""Time variants of one training, interleaved in one process: the worker's side of ``explain``.

All variants share a process, since the result is the difference between two variants: timed right
after each other, on the same cores and in the same memory, they differ in nothing else. A stretch
is a shortened epoch, timed like an epoch.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trainmark.backends import registry
from trainmark.backends.base import Backend, EpochPlan, Options, Trainer, no_tick
from trainmark.backends.parts import Separable
from trainmark.backends.peaks import Convolving, MeasuresPeaks, PeakKernels, QueuedWork, timed
from trainmark.data.dataset import Dataset
from trainmark.execute.protocol import answers
from trainmark.execute.protocol.wire import Send
from trainmark.execute.protocol.worker_commands import Dissect
from trainmark.execute.worker.order import epoch_plans, evaluation_sample
from trainmark.execute.worker.timing import Clock, timed_epoch
from trainmark.workload.model import Weights, initial_weights, lay_out
from trainmark.workload.products import Convolution, Product
from trainmark.workload.schedule import Batches
from trainmark.workload.spec import Workload

_FEWEST_STEPS = 3
"""Fewest steps of a long stretch."""
_FEWEST_LARGE_STEPS = 2
"""Fewest steps of a shorter stretch, for variants with long steps."""
_TRIED_STEPS = 12
"""Steps of the trial that decides how many steps fill a window."""
_SHORT = 0.125
"""Steps of the short stretch, as a share of those of the long one."""
_FEWEST_ROUNDS = 5
"""Fewest rounds of one process, even if they take longer than the budget."""
_FEWEST_SITTINGS = 3
"""Fewest processes that say how processes differ; if fewer fit, all rounds run in one."""
_LONGEST_WINDOWS = 4
"""Longest stretch, in windows, so that the fewest rounds still fit into the budget."""
_PROBE_SECONDS = 0.02
"""Seconds that products alone are repeated for at each timing."""
_MOST_VALUES = 2**24
"""Most values in a matrix of a product; a larger product is measured in part and extrapolated."""


@dataclass(frozen=True)
class ReadyVariant:
    """One prepared training: an epoch of many steps, and one of few."""

    trainer: Trainer
    weights: Weights
    long: EpochPlan
    short: EpochPlan

    @property
    def lengths(self) -> tuple[int, int]:
        """Steps of the short stretch and of the long one."""
        return len(self.short.sizes), len(self.long.sizes)

    def seconds(self, tick: Callable[[], None], clock: Clock) -> tuple[float, float]:
        """Return the seconds of a step and of starting an epoch.

        A long and a short epoch differ only in steps.
        """
        short, long = (self._epoch(plan, tick, clock) for plan in (self.short, self.long))
        few, many = self.lengths
        step = (long - short) / (many - few)
        return step, short - few * step

    def _epoch(self, plan: EpochPlan, tick: Callable[[], None], clock: Clock) -> float:
        # Long training on one batch leads to numbers that are slow to compute.
        self.trainer.load(self.weights)
        return timed_epoch(self.trainer, plan, tick, clock).seconds


@dataclass(frozen=True)
class TimedWork:
    """Work other than training.

    ``number`` of it are timed together, and the result is multiplied by ``times``.
    """

    work: QueuedWork
    number: int
    times: float

    def seconds(self, clock: Clock) -> float:
        """Return the seconds of all the work that it represents."""
        return self.times * timed(self.work, self.number, clock)


def dissect(request: Dissect, send: Send, tick: Callable[[], None], clock: Clock) -> None:
    """Time the variants of ``request``; the first one is the whole."""
    began = clock()
    backend = registry.load(request.backend)
    data = request.dataset.load()
    variants: dict[str, ReadyVariant] = {}
    steps = compile_seconds = None
    for number, asked in enumerate(request.variants):
        send(answers.Preparing(asked.name, number, len(request.variants)))
        workload = asked.workload
        options = asked.options
        parts = backend.parts(options) if isinstance(backend, Separable) else frozenset()
        if asked.takes_away not in (None, *parts):
            send(answers.Dropped(asked.name, answers.NOT_A_PART))
            continue
        options = dataclasses.replace(options, without=parts & frozenset(asked.without))
        try:
            if steps is None:
                steps, compile_seconds = _steps_in(
                    request.window, backend, workload, options, data, clock
                )
            # A step without input work uses the same batch every time.
            held = "input" in options.without and ("copy" in options.without or "copy" not in parts)
            given = _cut(data, workload.batches) if held else data
            fewest = _FEWEST_STEPS if asked.stretch >= 1 else _FEWEST_LARGE_STEPS
            count = max(round(steps * asked.stretch), fewest)
            workload = workload.without_distortions() if "input" in options.without else workload
            made, _ = _made(backend, workload, options, given, count, clock)
            made.seconds(no_tick, clock)
        except Exception as error:
            if not variants:
                raise
            send(answers.Dropped(asked.name, f"{type(error).__name__}: {error}"))
            continue
        variants[asked.name] = made
    try:
        probes = _probes(backend, request, clock)
    except Exception as error:  # noqa: BLE001  (such as too little memory next to all these)
        probes = {}
        send(answers.Dropped("products alone", f"{type(error).__name__}: {error}"))
    sittings = _sittings(request, clock() - began)
    rounds = math.ceil(request.rounds / sittings)
    lengths = {name: each.lengths for name, each in variants.items()}
    send(answers.VariantsReady(compile_seconds, lengths, sittings, rounds))
    _time_rounds(request, rounds, request.budget / sittings, variants, probes, send, tick, clock)
    whole = next(iter(variants.values()))
    asked = request.variants[0]
    for index in range(request.evaluations):
        sample = evaluation_sample(
            asked.workload, "test", len(data.test), asked.options.seed, index
        )
        chosen = () if sample is None else (sample,)
        start = clock()
        whole.trainer.evaluate("test", *chosen)
        send(answers.EvaluationTimed(clock() - start))


def _time_rounds(
    request: Dissect,
    rounds: int,
    budget: float,
    variants: dict[str, ReadyVariant],
    probes: dict[str, list[TimedWork]],
    send: Send,
    tick: Callable[[], None],
    clock: Clock,
) -> None:
    """Time every variant once per round, until ``budget`` seconds have passed.

    The order differs from round to round.
    """
    shuffled = random.Random(request.sitting)
    end = clock() + budget
    for index in range(rounds):
        order = list(variants)
        shuffled.shuffle(order)
        both = {name: variants[name].seconds(tick, clock) for name in order}
        seconds = {name: step for name, (step, _) in both.items()}
        seconds |= {
            name: sum(probe.seconds(clock) for probe in group) for name, group in probes.items()
        }
        send(answers.RoundTimed(index, seconds, {name: start for name, (_, start) in both.items()}))
        if clock() > end and index + 1 >= _FEWEST_ROUNDS:
            break


def _sittings(request: Dissect, seconds: float) -> int:
    """Choose the number of processes for the rounds.

    The first one took ``seconds`` to start up.

    The rounds use as many processes as can start within the allowed time, but not two, since two
    say next to nothing about how processes differ.
    """
    if request.sitting > 0 or request.settling is None:
        return request.sittings
    found = min(request.sittings, int(request.settling / max(seconds, 1e-9)))
    return found if found >= _FEWEST_SITTINGS else 1


def _steps_in(
    window: float,
    backend: Backend,
    workload: Workload,
    options: Options,
    data: Dataset,
    clock: Clock,
) -> tuple[int, float | None]:
    """Return the number of steps that fill ``window`` seconds.

    They also fill twice the time to start an epoch, within limits and at most an epoch.

    Also returns the duration of the first compilation, since later ones reuse much of it.
    """
    most = len(workload.batches.sizes(len(data.train)))
    tried = max(min(_TRIED_STEPS, most), _FEWEST_STEPS)
    trial, compile_seconds = _made(backend, workload, options, data, tried, clock)
    trial.seconds(no_tick, clock)
    tries = [trial.seconds(no_tick, clock) for _ in range(3)]
    step = statistics.median(step for step, _ in tries)
    start = min(start for _, start in tries)
    longest = _LONGEST_WINDOWS * window
    wanted = max(window, min(2 * start, longest))
    steps = round(wanted / max(step, 1e-6))
    return min(steps, most) if workload.batches.size != "full" else steps, compile_seconds


def _made(
    backend: Backend, workload: Workload, options: Options, data: Dataset, steps: int, clock: Clock
) -> tuple[ReadyVariant, float | None]:
    """Return a variant with this many steps per stretch, and its compile time in seconds."""
    model = lay_out(workload)
    trainer = backend.trainer(workload, model, data, options)
    weights = initial_weights(model, options.seed)
    trainer.load(weights)
    long, short = (
        _plan(workload, len(data.train), count, options)
        for count in (steps, max(1, round(_SHORT * steps)))
    )
    start = clock()
    compiled = trainer.compile(long)
    trainer.synchronize()
    took = clock() - start
    trainer.compile(short)
    return ReadyVariant(trainer, weights, long, short), took if compiled else None


def _plan(workload: Workload, examples: int, steps: int, options: Options) -> EpochPlan:
    """Return an epoch of this many steps, in the order of a run."""
    one_pass = len(workload.batches.sizes(examples))
    repeats = -(-steps // one_pass)
    epoch = workload.with_schedule(
        epochs=1, steps=steps, steps_per_epoch=None, dataset_repeats=repeats
    )
    return next(epoch_plans(epoch, examples, options.seed, inject=options.style == "fast"))


def _cut(data: Dataset, batches: Batches) -> Dataset:
    """Return the first batch of the training set, and the whole test set."""
    train = data.train.part(batches.sizes(len(data.train))[0])
    return dataclasses.replace(data, train=train, complete=False)


def _probes(backend: Backend, request: Dissect, clock: Clock) -> dict[str, list[TimedWork]]:
    """Return the products alone, as work to be timed.

    ``products``: each product and convolution once. ``empty``: equally many of minimal size.
    ``peak``: the product that is fastest.
    """
    products = list(request.products)
    convolutions = request.convolutions
    if not (products or convolutions) or not isinstance(backend, MeasuresPeaks):
        return {}
    kernels = backend.peak_kernels(request.variants[0].options)
    found: dict[str, list[TimedWork]] = {"products": [], "empty": []}
    if convolutions and isinstance(kernels, Convolving):
        found["products"] += _convolutions(kernels, convolutions, clock)
        tiny = [Convolution(1, 1, 1, 1, 1, 1, each.by_input) for each in convolutions]
        found["empty"].append(_ready(kernels.convolutions(tiny), 1.0, clock))
    else:
        for each in convolutions:
            products += each.products()
    if products:
        found["products"] += _products(kernels, products, clock)
        smallest = kernels.products([Product(1, 1, 1)] * len(products))
        found["empty"].append(_ready(smallest, 1.0, clock))
    peak = request.peak_size
    if peak is not None:
        found["peak"] = [_ready(kernels.products([Product(peak, peak, peak)]), 1.0, clock)]
    return found


def _products(kernels: PeakKernels, asked: list[Product], clock: Clock) -> Iterator[TimedWork]:
    """Yield the products that fit in memory together, then a part of each larger one."""
    whole = [product for product in asked if _largest_matrix(product) <= _MOST_VALUES]
    if whole:
        yield _ready(kernels.products(whole), 1.0, clock)
    for product in asked:
        if product not in whole:
            sides = {side: getattr(product, side) for side in ("rows", "inner", "columns")}
            longest = max(sides, key=sides.__getitem__)
            shorter = max(1, round(sides[longest] * _MOST_VALUES / _largest_matrix(product)))
            yield _ready(
                kernels.products([product._replace(**{longest: shorter})]),
                sides[longest] / shorter,
                clock,
            )


def _convolutions(
    kernels: Convolving, asked: Sequence[Convolution], clock: Clock
) -> Iterator[TimedWork]:
    """Yield each layer's convolution, with fewer examples if it is too large."""
    for each in asked:
        largest = max(math.prod(each.input_shape), math.prod(each.output_shape))
        fewer = max(1, min(each.batch, each.batch * _MOST_VALUES // largest))
        yield _ready(kernels.convolutions([each._replace(batch=fewer)]), each.batch / fewer, clock)


def _largest_matrix(product: Product) -> int:
    m = product.rows
    k = product.inner
    n = product.columns
    return max(m * k, k * n, m * n) * product.number


def _ready(work: QueuedWork, times: float, clock: Clock) -> TimedWork:
    """Run the work once, and return it repeated until it fills a window.

    The first run compiles and allocates.
    """
    timed(work, 1, clock)
    return TimedWork(work, max(1, round(_PROBE_SECONDS / max(timed(work, 1, clock), 1e-7))), times)
