"""The measured process: carries out one request and reports the results.

It imports only the standard library, NumPy and one framework. The clock is only read at
synchronised points; between two readings, only the backend's code runs.
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import itertools
import math
import platform
import queue
import re
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainmark.backends import registry
from trainmark.backends.base import Capabilities, EpochPlan, Evaluation, SplitName, Steps, Trainer
from trainmark.backends.layout import RankTrainer, require_agreement
from trainmark.backends.restart import Restartable
from trainmark.backends.threads import ThreadsSettable
from trainmark.errors import TrainingDiverged, TrainmarkError, assert_never
from trainmark.execute.protocol import answers, worker_commands
from trainmark.execute.protocol.wire import Channel, Send, counter, encoded
from trainmark.execute.worker import lifeline
from trainmark.execute.worker.order import epoch_plans, evaluation_sample
from trainmark.execute.worker.slices import (
    Enough,
    OutOfTime,
    Slices,
    TrainingStarts,
    Turns,
    keep_own,
)
from trainmark.execute.worker.timing import Clock, timed_epoch
from trainmark.record import weights as weight_files
from trainmark.workload import pytorch_draws
from trainmark.workload.model import Model, Weights, initial_weights, lay_out
from trainmark.workload.pytorch_draws import Drawn
from trainmark.workload.schedule import epoch_sizes
from trainmark.workload.spec import Workload

MOST_KEPT_EXAMPLES = 1_000_000
"""Largest training, in examples, whose epochs are kept for repeating it: 8 MB of indices. Drawing
the order of 60,000 examples takes 5 ms, longer than twenty steps of a small network."""
_GPU_LIBRARY = re.compile(r"lib(cudnn|cublas|cudart|nccl|cufft|cusolver)\.so")


def main(socket_descriptor: int, position_descriptor: int) -> int:
    """Serve one request from the socket; returns the process's exit code."""
    return _serve(
        Channel(socket.socket(fileno=socket_descriptor)),
        counter(position_descriptor),
        position_descriptor,
    )


def rank_main(address: str) -> int:
    """Serve the launcher's request as one of several ranks."""
    from trainmark.execute.worker import ranks

    return _serve(*ranks.answer(address))


def _serve(
    channel: Channel, tick: Callable[[], None], position_descriptor: int | None = None
) -> int:
    turns: Turns = queue.SimpleQueue()
    message = None
    while message is None:
        arrived = channel.receive()
        if arrived is None:
            return 1
        message = next(arrived, None)
    try:
        request = worker_commands.read(message)
        before_end = None
        if isinstance(request, worker_commands.RunScript):
            from trainmark.execute.worker.supervisor import end_command

            before_end = end_command  # the processes that a command started must be ended first
        lifeline.tie(channel, turns.put, before_end)
        _carry_out(request, channel.send, tick, turns, position_descriptor)
        channel.send(answers.Done())
    except TrainingDiverged as diverged:
        channel.send(answers.Diverged(str(diverged), diverged.step, diverged.before))
    except Exception as error:  # noqa: BLE001  (whatever a framework raises ends in the record)
        traceback.print_exc()
        channel.send(answers.Failed(_reason(error)))
        return 1
    return 0


def _carry_out(
    request: worker_commands.WorkerCommand,
    send: Send,
    tick: Callable[[], None],
    turns: Turns,
    position_descriptor: int | None,
) -> None:
    """Carry out a request.

    Only its own code is imported, since every import delays the start of a training.
    """
    match request:
        case worker_commands.Probe():
            _probe(request.backend, send)
        case worker_commands.ListBackends():
            send(
                answers.BackendsListed(
                    {entry.name: entry.install for entry in registry.entries().values()}
                )
            )
        case worker_commands.MeasurePeaks():
            _measure_peaks(request, send)
        case worker_commands.Examine():
            _examine(request.backend, send)
        case worker_commands.Dissect():
            from trainmark.execute.worker.dissect import dissect

            dissect(request, send, tick, time.perf_counter)
        case worker_commands.Predict():
            from trainmark.execute.worker.predict import predict

            predict(request, send)
        case worker_commands.Generate():
            from trainmark.execute.worker.predict import generate

            generate(request, send)
        case worker_commands.RunScript():
            from trainmark.execute.worker.script import run_script

            run_script(request, send, time.perf_counter, turns)
        case worker_commands.ReplayTraining():
            from trainmark.execute.worker.replay import replay

            replay(request, send, tick)
        case worker_commands.ComputeReference():
            from trainmark.execute.worker.parity_reference import compute_reference

            compute_reference(request, send)
        case worker_commands.CheckParity():
            from trainmark.execute.worker.parity_check import check_parity

            check_parity(request, send, tick)
        case worker_commands.StartRanks():
            from trainmark.execute.worker import ranks

            assert position_descriptor is not None, "a rank can't launch ranks"
            ranks.launch(request, send, position_descriptor, turns)
        case worker_commands.Train():
            train(request, send, tick, time.perf_counter, turns)
        case _:
            assert_never(request)


def train(
    request: worker_commands.Train, send: Send, tick: Callable[[], None], clock: Clock, turns: Turns
) -> None:
    """Carry out a training."""
    workload = request.workload
    options = request.options
    model = lay_out(workload)
    # Decompression and checksums release the interpreter lock, so they don't slow down the import
    # of the framework.
    with ThreadPoolExecutor(max_workers=1) as reader:
        reading = reader.submit(request.dataset.load)
        backend = registry.load(request.backend)
    data = reading.result()
    trainer = backend.trainer(workload, model, data, options)
    can = backend.capabilities()  # it may initialise the devices, so it comes late
    examples: dict[SplitName, int] = {"train": len(data.train), "test": len(data.test)}
    drawn = pytorch_draws.draw(workload, model, **examples)
    weights = _first_weights(request, model, drawn)
    if isinstance(trainer, RankTrainer):
        require_agreement(trainer.gather(_facts(request, can, data.sha256, weights)))
    trainer.load(weights)
    pacing = Slices(
        turns if request.turns else None,
        send,
        request.origin,
        _agreement(trainer),
        request.ends_at,
    )
    state = TrainingState(request, trainer, examples, pacing, drawn)
    first = next(state.plans())
    send(
        answers.Ready(
            seconds=clock() - request.origin,
            packages={"numpy": np.__version__, **can.packages},
            weights_sha256=weight_files.digest(weights),
            steps=sum(len(sizes) for sizes in state.sizes),
            epochs=len(state.sizes),
        )
    )
    try:
        pacing.wait_for_turn()
        start = clock()
        compiled = trainer.compile(first)
        trainer.synchronize()
        send(answers.Compiled(clock() - start if compiled else None))
        if request.turns in ("until-stopped", "slices-first"):
            if pacing.threads_to_try and isinstance(trainer, ThreadsSettable):
                _choose_threads(state, trainer, tick, clock, send)
            _train_in_slices(state, weights, tick, clock)
            if isinstance(trainer, Restartable):
                trainer.restart(weights)
            else:
                del trainer, state  # otherwise memory would hold two trainers until the end
                gc.collect()  # models refer to themselves
                trainer = backend.trainer(workload, model, data, options)
                trainer.load(weights)
                trainer.compile(first)
                state = TrainingState(request, trainer, examples, pacing, drawn)
        for repeat, weights_file in enumerate(request.weight_files):
            if repeat > 0:
                # The continued protocol keeps the weights and starts a new optimiser.
                state.trainer.load(state.trainer.weights())
            _train_repeat(state, weights_file, send, tick, clock)
    except Enough:
        send(_finished(state.trainer, None))
    except OutOfTime:
        send(dataclasses.replace(_finished(state.trainer, None), shortened=True))


def _agreement(trainer: Trainer) -> Callable[[Any], Any]:
    """Return what makes all ranks of a training take the first one's value."""
    if not isinstance(trainer, RankTrainer):
        return keep_own
    gather = trainer.gather

    def take_first(own: Any) -> Any:
        return gather(own)[0]

    return take_first


def _choose_threads(
    state: TrainingState,
    settable: ThreadsSettable,
    tick: Callable[[], None],
    clock: Clock,
    send: Send,
) -> None:
    """Set the number of CPU threads that the parent wants, or the fastest if it names several."""
    from trainmark.execute.worker.threads import try_threads

    wanted = state.pacing.threads_to_try
    if len(wanted) == 1:
        settable.set_threads(wanted[0])
    else:
        found = try_threads(state.trainer, settable, state.plans, wanted, tick, clock)
        if found is not None:
            send(found)


def _train_in_slices(
    state: TrainingState, weights: Weights, tick: Callable[[], None], clock: Clock
) -> None:
    """Train slice by slice until the parent wants the complete training.

    A training that ends earlier is repeated.

    Raises:
        Enough: the parent wants no training.
    """
    kept = list(state.plans()) if state.is_short else None
    try:
        while True:
            for plan in state.plans() if kept is None else kept:
                timed_epoch(state.trainer, plan, tick, clock, pacing=state.pacing)
            ended = clock()
            state.trainer.load(weights)
            state.trainer.synchronize()
            state.pacing.restarted(clock() - ended)
    except TrainingStarts:
        return


@dataclass(frozen=True)
class TrainingState:
    """The state shared by the repeats of one process."""

    request: worker_commands.Train
    trainer: Trainer
    examples: dict[SplitName, int]
    pacing: Slices
    drawn: Drawn | None = None

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """Batch sizes, ``[epoch][step]``."""
        workload = self.request.workload
        return epoch_sizes(workload.schedule, workload.batches, self.examples["train"])

    @property
    def is_short(self) -> bool:
        """Whether the epochs of the whole training can be kept, instead of being drawn again."""
        return sum(map(sum, self.sizes)) <= MOST_KEPT_EXAMPLES

    def evaluate(self, split: SplitName, index: int) -> Evaluation:
        """Evaluate a split, or a sample of it, after the epoch ``index``."""
        workload = self.request.workload
        seed = self.request.options.seed
        number = index + workload.metrics.before
        if self.drawn is not None:
            return self.trainer.evaluate(split, self.drawn.sample(split, number))
        sample = evaluation_sample(workload, split, self.examples[split], seed, number)
        return (
            self.trainer.evaluate(split) if sample is None else self.trainer.evaluate(split, sample)
        )

    def plans(self) -> Iterator[EpochPlan]:
        """The epochs, each drawn on demand."""
        asked = self.request
        examples = self.examples["train"]
        return epoch_plans(
            asked.workload,
            examples,
            asked.options.seed,
            inject=asked.inject_order,
            drawn=self.drawn,
        )


def _train_repeat(
    state: TrainingState,
    weights_file: str | None,
    send: Send,
    tick: Callable[[], None],
    clock: Clock,
) -> None:
    trainer = state.trainer
    workload = state.request.workload
    log_every = state.request.log_every
    step = 0
    before = None
    origin = state.request.origin
    first_weights = trainer.weights()
    last = len(state.sizes) - 1
    if workload.metrics.before:
        send(answers.EvaluatedBefore(**_evaluated(state, -1, clock)))
    for index, plan in enumerate(state.plans()):
        epoch = timed_epoch(
            trainer, plan, tick, clock, log_every=log_every, first_step=step, pacing=state.pacing
        )
        if epoch.is_cut and (index > 0 or not epoch.results):
            raise OutOfTime
        steps = _joined([trainer.read(result) for result in epoch.results])
        running = {} if epoch.is_cut else _running(workload, steps, plan)
        log = list(_log_lines(epoch.edges, steps, plan, step, log_every)) if log_every else []
        send(
            answers.EpochEnded(
                index=index,
                start=epoch.start - origin,
                seconds=epoch.seconds,
                windows=[(start - origin, seconds) for start, seconds in epoch.windows],
                steps=epoch.done,
                examples=sum(plan.sizes[: epoch.done]),
                losses=steps.losses.tolist(),
                l2_losses=None if steps.l2_losses is None else steps.l2_losses.tolist(),
                log=log,
                **running,
            )
        )
        _stop_if_diverged(steps, step, before)
        if epoch.is_cut:
            raise OutOfTime
        step += len(plan.sizes)
        before = float(steps.losses[-1])
        if workload.schedule.evaluate == "every-epoch" or index == last:
            evaluated = answers.Evaluated(index, **_evaluated(state, index, clock))
            send(evaluated)
            known = {name: value for name, value in vars(evaluated).items() if value is not None}
            until = workload.schedule.until
            if until is not None and until.met_by((running | known).get(until.quantity)):
                break
    if weights_file:
        path = Path(weights_file)
        weight_files.save(trainer.weights(), path)
        if workload.weight_average:
            weight_files.save(trainer.averaged(), weight_files.average_of(path))
    state.pacing.finish()
    send(_finished(trainer, first_weights))


def _finished(trainer: Trainer, first_weights: Weights | None) -> answers.Finished:
    unchanged = None
    if first_weights is not None:
        unchanged = _unchanged(first_weights, trainer.weights())
    return answers.Finished(
        settings=trainer.settings(),
        unchanged_weights=unchanged,
        host_peak_bytes=_host_peak_bytes(),
        device_peak_bytes=trainer.device_peak_bytes(),
    )


def _unchanged(before: Weights, after: Weights) -> list[str]:
    """Return the names of the weights that are bitwise unchanged."""
    return [name for name, value in before.items() if np.array_equal(value, after[name])]


def _running(workload: Workload, steps: Steps, plan: EpochPlan) -> dict[str, Any]:
    """Return the running training metrics of an epoch, weighted by batch size.

    The result is empty if exact ones are requested.
    """
    if workload.metrics.train != "running":
        return {}
    sizes = np.array(plan.sizes)
    losses = steps.losses
    if steps.l2_losses is not None and not workload.metrics.loss_includes_l2:
        losses = losses - steps.l2_losses
    total = sizes.sum()
    predictions = total * math.prod(workload.input.outputs_shape)
    return {
        "train_loss": float((losses * sizes).sum() / total),
        "train_accuracy": float(steps.hits.sum() / predictions),
    }


def _evaluated(state: TrainingState, index: int, clock: Clock) -> dict[str, Any]:
    start = clock()
    exact = state.request.workload.metrics.train == "exact"
    splits: tuple[SplitName, ...] = ("test", "train") if exact else ("test",)
    found = {}
    for split in splits:
        evaluation = state.evaluate(split, index)
        found.update({f"{split}_{name}": value for name, value in vars(evaluation).items()})
    return {"seconds": clock() - start, **found}


def _log_lines(
    edges: list[tuple[int, float]], steps: Steps, plan: EpochPlan, first_step: int, log_every: int
) -> Iterator[answers.LoggedStep]:
    for (start, earlier), (end, later) in itertools.pairwise(edges):
        step = first_step + end - 1
        loss = float(steps.losses[end - 1])
        seconds = later - earlier
        if step % log_every == 0:  # otherwise it is the end of an epoch only
            yield answers.LoggedStep(
                step, loss, sum(plan.sizes[start:end]) / seconds, seconds / (end - start)
            )


def _stop_if_diverged(steps: Steps, first_step: int, before: float | None) -> None:
    wrong = np.flatnonzero(~np.isfinite(steps.losses))
    if not wrong.size:
        return
    index = int(wrong[0])
    previous = float(steps.losses[index - 1]) if index else before
    raise TrainingDiverged(first_step + index, float(steps.losses[index]), previous)


def _joined(parts: list[Steps]) -> Steps:
    l2_losses = [part.l2_losses for part in parts if part.l2_losses is not None]
    return Steps(
        np.concatenate([part.losses for part in parts]),
        np.concatenate(l2_losses) if l2_losses else None,
        np.concatenate([part.hits for part in parts]),
    )


def _first_weights(request: worker_commands.Train, model: Model, drawn: Drawn | None) -> Weights:
    if request.initial_weights:
        return weight_files.load_for(model, Path(request.initial_weights))
    return drawn.weights if drawn else initial_weights(model, request.options.seed)


def _probe(backend: str, send: Send) -> None:
    from trainmark.backends import peaks

    loaded = registry.load(backend)
    can = registry.capabilities(backend, loaded)
    send(answers.Capable(can, platform.python_version(), isinstance(loaded, peaks.MeasuresPeaks)))


def _measure_peaks(request: worker_commands.MeasurePeaks, send: Send) -> None:
    from trainmark.backends import peaks

    backend = registry.load(request.backend)
    if not isinstance(backend, peaks.MeasuresPeaks):
        return
    devices = {device.id: device for device in backend.capabilities().devices}
    for options in request.options:
        found = peaks.measure(
            backend.peak_kernels(options), devices[options.device], time.perf_counter
        )
        send(answers.PeaksMeasured(options.device, found))


def _facts(
    request: worker_commands.Train, can: Capabilities, data_sha256: str, weights: Weights
) -> dict[str, str]:
    """Return the facts that must be the same for all ranks of a training."""
    from trainmark.execute.worker import ranks

    options = request.options
    identity = encoded([request.workload, options, request.inject_order])
    return {
        "host": ranks.host_name(),
        "trainmark": str(request.trainmark),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        **{f"version of {name}": version for name, version in can.packages.items()},
        "workload": request.workload.name,
        "data (sha256)": data_sha256,
        **{name: str(getattr(options, name)) for name in ("seed", "threads", "precision")},
        "initial weights (sha256)": weight_files.digest(weights),
        "options": hashlib.sha256(identity).hexdigest()[:16],
    }


def _examine(name: str, send: Send) -> None:
    """Send several answers, so that a crash loses only the remaining ones."""
    from trainmark.backends.examination import Examinable, try_product

    backend = registry.load(name)
    seen = answers.Examined()
    if isinstance(backend, Examinable):
        seen = dataclasses.replace(seen, examination=backend.examine())
        send(seen)
    can = registry.capabilities(name, backend)
    devices = tuple(device.id for device in can.devices)
    seen = dataclasses.replace(seen, version=can.version, devices=devices)
    send(seen)
    if isinstance(backend, Examinable):
        for device in devices:
            product = try_product(backend, device)
            seen = dataclasses.replace(seen, products=(*seen.products, product))
            send(seen)
            seen = dataclasses.replace(seen, libraries=loaded_libraries())
            send(seen)


def loaded_libraries(maps: Path = Path("/proc/self/maps")) -> dict[str, list[str]]:
    """Return the GPU libraries loaded in this process by name, each with its files.

    There should be only one file of each.
    """
    try:
        mapped = maps.read_text()
    except OSError:  # macOS has no such file
        return {}
    found: dict[str, list[str]] = {}
    for path in sorted(set(re.findall(r"\s(/\S+)$", mapped, re.MULTILINE))):
        library = _GPU_LIBRARY.match(path.rpartition("/")[2])
        if library:
            found.setdefault(library[1], []).append(path)
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, TrainmarkError):
        return str(error)
    first_line = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
        return f"out of memory: {first_line or type(error).__name__}"
    return f"{type(error).__name__}: {first_line}"


def _host_peak_bytes() -> int:
    """Return the peak resident memory; except on Linux, it may include the parent's before exec."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.is_file() else None
    if found:
        return int(found[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
