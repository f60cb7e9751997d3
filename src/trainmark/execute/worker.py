"""The measured process: carries out one request and reports on it.

Imports the standard library, NumPy and one framework, nothing else. Time is read here and only at synchronised edges;
between two readings runs the backend's code alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import platform
import re
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmark.backends import collectives, limits, registry
from trainmark.backends.base import Capabilities, Device, EpochPlan, Options, Steps, Trainer
from trainmark.backends.examination import Examinable, try_product
from trainmark.backends.layout import Spread, require_agreement
from trainmark.data.load import load as load_dataset
from trainmark.errors import DataError, Diverged, TrainmarkError
from trainmark.execute import lifeline, ranks
from trainmark.execute.dissect import dissect
from trainmark.execute.nudge import nudge
from trainmark.execute.order import epoch_plans
from trainmark.execute.predict import predict
from trainmark.execute.replay import replay
from trainmark.execute.script import end_descendants, run_script
from trainmark.execute.timing import Clock, timed_epoch
from trainmark.execute.wire import Channel, Message, counter
from trainmark.record import weights as weight_files
from trainmark.workload.model import Model, Weights, initial_weights, lay_out
from trainmark.workload.schedule import epoch_sizes
from trainmark.workload.spec import Workload

_NVIDIA_LIBRARY = re.compile(r"lib(cudnn|cublas|cudart|nccl|cufft|cusolver)\.so")


def main(socket_descriptor: int, position_descriptor: int) -> int:
    """Serve one request that comes over the socket; returns the process's exit code."""
    return _serve(Channel(socket.socket(fileno=socket_descriptor)), counter(position_descriptor), position_descriptor)


def rank_main(address: str) -> int:
    """Serve, as one rank of many, the request that its launcher has."""
    return _serve(*ranks.answer(address))


def _serve(channel: Channel, tick: Callable[[], None], position_descriptor: int | None = None) -> int:
    request = None
    while request is None:
        arrived = channel.receive()
        if arrived is None:
            return 1
        request = next(arrived, None)
    if request["event"] == "script":  # what it started must go first, or it would be left behind
        lifeline.tie_with(channel, end_descendants)
    else:
        lifeline.tie(channel)
    try:
        if request["event"] == "probe":
            _probe(request["backend"], channel.send)
        elif request["event"] == "backends":
            _name_backends(channel.send)
        elif request["event"] == "limits":
            _measure_limits(request, channel.send)
        elif request["event"] == "examine":
            _examine(request["backend"], channel.send)
        elif request["event"] == "dissect":
            dissect(request, channel.send, tick, time.perf_counter)
        elif request["event"] == "predict":
            predict(request, channel.send)
        elif request["event"] == "script":
            run_script(request, channel.send, time.perf_counter)
        elif request["event"] == "replay":
            replay(request, channel.send, tick)
        elif request["event"] == "launch" and position_descriptor is not None:
            ranks.launch(request, channel.send, position_descriptor)
        elif request["event"] == "collectives":
            _time_collectives(request, channel.send)
        else:
            train(request, channel.send, tick, time.perf_counter)
    except Diverged as diverged:
        channel.send({"event": "diverged", "step": diverged.step, "before": diverged.before, "reason": str(diverged)})
    except Exception as error:  # noqa: BLE001  (whatever a framework raises ends in the record)
        traceback.print_exc()
        channel.send({"event": "failed", "reason": _reason(error)})
        return 1
    return 0


def train(request: Message, say: Callable[[Message], None], tick: Callable[[], None], clock: Clock) -> None:
    """Train as ``request`` says (see :meth:`trainmark.execute.plan.Task.request`)."""
    workload = Workload.from_data(request["workload"])
    model = lay_out(workload)
    options = Options.from_data(request["options"])
    data = load_dataset(request["dataset"]["name"], Path(request["dataset"]["directory"]))
    backend = registry.load(request["backend"])
    trainer = backend.trainer(workload, model, data, options)
    can = backend.capabilities()  # not before: looking at devices would settle how many there are
    weights = _first_weights(request, model)
    if isinstance(trainer, Spread):
        require_agreement(trainer.gather(_facts(request, can, data.sha256, weights)))
    trainer.load(weights)
    course = Course(
        workload,
        trainer,
        len(data.train),
        seed=options.seed,
        inject_order=request["inject_order"],
        origin=request["origin"],
        log_every=request["log_every"],
    )
    first = next(course.plans(), None)
    if first is None:
        raise DataError(
            "no step to train", expected="at least one whole batch", found=f"{len(data.train)} training examples"
        )
    say(
        {
            "event": "ready",
            "seconds": clock() - request["origin"],
            "packages": {"numpy": np.__version__, **can.packages},
            "weights_sha256": weight_files.digest(weights),
            "steps": sum(len(sizes) for sizes in course.sizes),
            "epochs": len(course.sizes),
        }
    )
    start = clock()
    compiled = trainer.compile(first)
    trainer.synchronize()
    say({"event": "compiled", "seconds": clock() - start if compiled else None})
    for repeat in request["repeats"]:
        if repeat["index"]:
            trainer.load(trainer.weights())  # continued: the same weights, a new optimiser
        _train_repeat(course, repeat, say, tick, clock)
    say({"event": "done"})


@dataclass(frozen=True)
class Course:
    """What stays the same over the repeats of one process; ``origin`` is the clock's reading at its start."""

    workload: Workload
    trainer: Trainer
    examples: int
    seed: int
    inject_order: bool
    origin: float
    log_every: int | None

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """Batch sizes, ``[epoch][step]``."""
        return epoch_sizes(self.workload.schedule, self.workload.batches, self.examples)

    def plans(self) -> Iterator[EpochPlan]:
        """The epochs, each drawn on demand."""
        workload = self.workload
        return epoch_plans(workload.schedule, workload.batches, self.examples, self.seed, inject=self.inject_order)


def _train_repeat(
    course: Course, repeat: Message, say: Callable[[Message], None], tick: Callable[[], None], clock: Clock
) -> None:
    trainer, step, before = course.trainer, 0, None
    first_weights = trainer.weights()
    last = len(course.sizes) - 1
    for index, plan in enumerate(course.plans()):
        edges, results = timed_epoch(trainer, plan, tick, clock, log_every=course.log_every, first_step=step)
        steps = _joined([trainer.read(result) for result in results])
        running = _running(course.workload, steps, plan)
        log = _log_lines(edges, steps, plan, step, course.log_every) if course.log_every else []
        say(
            {
                "event": "epoch",
                "index": index,
                "start": edges[0][1] - course.origin,
                "seconds": edges[-1][1] - edges[0][1],
                "steps": len(plan.sizes),
                "examples": sum(plan.sizes),
                "losses": steps.losses.tolist(),
                "l2_losses": None if steps.l2_losses is None else steps.l2_losses.tolist(),
                "log": log,
                **running,
            }
        )
        _stop_if_diverged(steps, step, before)
        step += len(plan.sizes)
        before = float(steps.losses[-1])
        if course.workload.schedule.evaluate == "every-epoch" or index == last:
            evaluated = _evaluated(course, index, clock)
            say(evaluated)
            until = course.workload.schedule.until
            if until is not None and until.met_by({**running, **evaluated}.get(until.quantity)):
                break
    if repeat["weights"]:
        path = Path(repeat["weights"])
        weight_files.save(trainer.weights(), path)
        if course.workload.weight_average:
            weight_files.save(trainer.averaged(), weight_files.average_of(path))
    say(
        {
            "event": "finished",
            "index": repeat["index"],
            "unchanged_weights": _unchanged(first_weights, trainer.weights()),
            "settings": trainer.settings(),
            "device_peak_bytes": trainer.device_peak_bytes(),
            "host_peak_bytes": _host_peak_bytes(),
        }
    )


def _unchanged(before: Weights, after: Weights) -> list[str]:
    """The names of the weights that are what they were, to the last bit."""
    return [name for name, value in before.items() if np.array_equal(value, after[name])]


def _running(workload: Workload, steps: Steps, plan: EpochPlan) -> Message:
    """The running training metrics of an epoch, weighted by batch size; empty if exact ones are requested."""
    if workload.metrics.train != "running":
        return {}
    sizes = np.array(plan.sizes)
    losses = steps.losses
    if steps.l2_losses is not None and not workload.metrics.loss_includes_l2:
        losses = losses - steps.l2_losses
    total = sizes.sum()
    return {"train_loss": float((losses * sizes).sum() / total), "train_accuracy": float(steps.hits.sum() / total)}


def _evaluated(course: Course, index: int, clock: Clock) -> Message:
    start = clock()
    test = course.trainer.evaluate("test")
    found = {"test_loss": test.loss, "test_accuracy": test.accuracy}
    if course.workload.metrics.train == "exact":
        train = course.trainer.evaluate("train")
        found |= {"train_loss": train.loss, "train_accuracy": train.accuracy}
    return {"event": "evaluated", "index": index, "seconds": clock() - start, **found}


def _log_lines(
    edges: list[tuple[int, float]], steps: Steps, plan: EpochPlan, first_step: int, log_every: int
) -> list[Message]:
    lines = []
    for (start, earlier), (end, later) in itertools.pairwise(edges):
        if (first_step + end - 1) % log_every:
            continue  # the end of an epoch, not of a stretch
        seconds = later - earlier
        lines.append(
            {
                "step": first_step + end - 1,
                "loss": float(steps.losses[end - 1]),
                "samples_per_second": sum(plan.sizes[start:end]) / seconds,
                "seconds_per_step": seconds / (end - start),
            }
        )
    return lines


def _stop_if_diverged(steps: Steps, first_step: int, before: float | None) -> None:
    wrong = np.flatnonzero(~np.isfinite(steps.losses))
    if not wrong.size:
        return
    index = int(wrong[0])
    previous = float(steps.losses[index - 1]) if index else before
    raise Diverged(first_step + index, float(steps.losses[index]), previous)


def _joined(parts: list[Steps]) -> Steps:
    l2_losses = [part.l2_losses for part in parts if part.l2_losses is not None]
    return Steps(
        np.concatenate([part.losses for part in parts]),
        np.concatenate(l2_losses) if l2_losses else None,
        np.concatenate([part.hits for part in parts]),
    )


def _first_weights(request: Message, model: Model) -> Weights:
    options = request["options"]
    if request["initial_weights"]:
        path = Path(request["initial_weights"])
        weights = weight_files.load(path)
        weight_files.require_fit(weights, model, path)
    else:
        weights = initial_weights(model, options["seed"])
    return weights if request["nudge"] is None else nudge(weights, request["nudge"], options["precision"])


def _probe(backend: str, say: Callable[[Message], None]) -> None:
    loaded = registry.load(backend)
    can = loaded.capabilities()
    say(
        {
            "event": "capabilities",
            "backend": backend,
            "version": can.version,
            "styles": list(can.styles),
            "devices": [_device(device) for device in can.devices],
            "kinds": sorted(can.kinds),
            "untested": can.untested,
            "spreads": can.spreads,
            "compiles_already": can.compiles_already,
            "packages": can.packages,
            "limited": isinstance(loaded, limits.Limited),
            "python": platform.python_version(),
        }
    )
    say({"event": "done"})


def _name_backends(say: Callable[[Message], None]) -> None:
    """The backends registered in this interpreter, its plug-ins included."""
    shown = [entry for entry in registry.entries().values() if not entry.hidden]
    say({"event": "backends", "install": {entry.name: entry.install for entry in shown}})
    say({"event": "done"})


def _measure_limits(request: Message, say: Callable[[Message], None]) -> None:
    backend, options = registry.load(request["backend"]), Options.from_data(request["options"])
    device = next(device for device in backend.capabilities().devices if device.id == options.device)
    if isinstance(backend, limits.Limited):
        peaks = limits.measure(backend.limits(options), device, time.perf_counter)
        say({"event": "peaks", **dataclasses.asdict(peaks)})
    say({"event": "done"})


def _time_collectives(request: Message, say: Callable[[Message], None]) -> None:
    backend, options = registry.load(request["backend"]), Options.from_data(request["options"])
    if isinstance(backend, collectives.Collective):
        reduction = backend.reduction(options, request["arrays"])
        timings = collectives.measure(reduction, time.perf_counter, request["sizes"])
        say({"event": "collectives", "timings": [dataclasses.asdict(timing) for timing in timings]})
    say({"event": "done"})


def _facts(request: Message, can: Capabilities, data_sha256: str, weights: Weights) -> dict[str, str]:
    """What all ranks must have alike to train one thing."""
    told = {name: request[name] for name in ("workload", "options", "inject_order")}
    return {
        "host": ranks.host_name(),
        "trainmark": request["trainmark"],
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        **{f"version of {name}": version for name, version in can.packages.items()},
        "workload": request["workload"]["name"],
        "data (sha256)": data_sha256,
        **{name: str(request["options"][name]) for name in ("seed", "threads", "precision")},
        "initial weights (sha256)": weight_files.digest(weights),
        "options": hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16],
    }


def _examine(name: str, say: Callable[[Message], None]) -> None:
    """Send several messages, so that results before a crash are kept."""
    backend = registry.load(name)
    if isinstance(backend, Examinable):
        say({"event": "examined", **dataclasses.asdict(backend.examine())})
    can = backend.capabilities()
    devices = [device.id for device in can.devices]
    say({"event": "seen", "version": can.version, "devices": devices})
    if isinstance(backend, Examinable):
        for device in devices:
            say({"event": "product", **dataclasses.asdict(try_product(backend, device))})
            say({"event": "loaded", "libraries": loaded_libraries()})
    say({"event": "done"})


def loaded_libraries(maps: Path = Path("/proc/self/maps")) -> dict[str, list[str]]:
    """NVIDIA's libraries in this process by name, each with the files it came from; more than one is one too many."""
    try:
        mapped = maps.read_text()
    except OSError:  # not on macOS
        return {}
    found: dict[str, list[str]] = {}
    for path in sorted(set(re.findall(r"\s(/\S+)$", mapped, re.MULTILINE))):
        library = _NVIDIA_LIBRARY.match(path.rpartition("/")[2])
        if library:
            found.setdefault(library[1], []).append(path)
    return found


def _device(device: Device) -> Message:
    return {
        "id": device.id,
        "name": device.name,
        "kind": device.kind,
        "memory_bytes": device.memory_bytes,
        "precisions": list(device.precisions),
    }


def _reason(error: Exception) -> str:
    if isinstance(error, TrainmarkError):
        return str(error)
    first_line = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
        return f"out of memory: {first_line or type(error).__name__}"
    return f"{type(error).__name__}: {first_line}"


def _host_peak_bytes() -> int:
    """Peak resident memory. On Linux it is that of this program; elsewhere it may include the parent's before exec."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.is_file() else None
    if found:
        return int(found[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
