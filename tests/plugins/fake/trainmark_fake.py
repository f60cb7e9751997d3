"""A backend that trains nothing, asynchronously: for tests of everything around a backend.

Steps are queued and 'finish' later, so a reading of the clock without ``synchronize`` measures
nearly nothing, and that fails a test on any laptop. ``TRAINMARK_FAKE`` holds JSON that says how it
behaves, see :class:`Behaviour`.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import (
    STYLES,
    Capabilities,
    Device,
    EpochPlan,
    Evaluation,
    Options,
    SplitName,
    StepPart,
    Steps,
    Style,
    require_support,
)
from trainmark.backends.examination import LEFT, RIGHT, Examination
from trainmark.backends.parts import PARTS
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.spec import Workload


@dataclass(frozen=True)
class Behaviour:
    """The behaviour of the fake.

    Args:
        step_seconds: duration of a step on ``cpu``, whatever it computes; ``cuda:0`` is ``speedup``
            times faster.
        flops_per_second: adds to that the FLOPs of the step; 0 adds nothing.
        optimizer_seconds: adds to that, too.
        input_seconds, copy_seconds, dispatch_seconds: of a step on the host, which the device does
            not wait for; ``fast`` has none of them.
        fetches: whether the host waits for the device after every step.
        at_step: when ``fail`` happens.
        fail: ``raise``, ``kill`` (SIGKILL), ``crash`` (SIGSEGV), ``hang``, ``memory``
            (MemoryError), ``nan`` or ``exit``; ``kill-waiting`` is SIGKILL of a process that waits,
            once another seed's has reached ``at_step``.
        message: message of the error of ``raise``, such as a driver's message.
        only_on: the device or the style with which ``fail`` happens; empty is every one.
        only_seed: the seed with which ``fail`` happens, which selects a round; 0 is every seed.
        reached: the file by which a process of ``kill-waiting`` learns that another one has reached
            ``at_step``.
        has_gpu: whether the driver lists a GPU.
        needs_all_of: a file that one process at a time can have; for another there is no memory.
        noise: written on stdout and stderr at every epoch, as frameworks do.
    """

    step_seconds: float = 0.001
    flops_per_second: float = 0.0
    optimizer_seconds: float = 0.0
    input_seconds: float = 0.0
    copy_seconds: float = 0.0
    dispatch_seconds: float = 0.0
    fetches: bool = False
    speedup: float = 4.0
    at_step: int = 0
    fail: str = ""
    message: str = "the fake was asked to fail"
    only_on: str = ""
    only_seed: int = 0
    reached: str = ""
    has_gpu: bool = True
    needs_all_of: str = ""
    noise: str = ""


def behaviour() -> Behaviour:
    """Return the behaviour that the environment requests."""
    data = json.loads(os.environ.get("TRAINMARK_FAKE", "{}"))
    return Behaviour(
        **{field.name: data[field.name] for field in fields(Behaviour) if field.name in data}
    )


KINDS = frozenset(
    {
        *(
            "dense",
            "conv2d",
            "max-pool",
            "local-response-norm",
            "relu",
            "dropout",
            "channel-dropout",
            "flatten",
        ),
        *(
            "log-softmax",
            "nll",
            "softmax-cross-entropy",
            "softmax-then-log",
            "clipped-softmax-cross-entropy",
        ),
        *("sgd", "adam", "rmsprop"),
    }
)


class FakeBackend:
    """Two pretended devices: ``cpu`` and, unless the driver should list no GPU, ``cuda:0``."""

    def capabilities(self) -> Capabilities:
        """Everything that any workload needs."""
        devices = (
            Device("cpu", "fake CPU", "cpu", None, ("fp32",)),
            Device("cuda:0", "fake GPU", "accelerator", 2**30, ("fp32", "bf16")),
        )
        listed = devices if behaviour().has_gpu else devices[:1]
        return Capabilities("fake", "1.0", STYLES, listed, KINDS, {"fake": "1.0"})

    def examine(self) -> Examination:
        """Return an examination that finds a build for a missing GPU."""
        return Examination("CUDA 13.0", ("sm_90",))

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """A product; a device that is to crash or hang does so here, too."""
        does = behaviour()
        if does.fail == "crash" and does.only_on == device:
            os.kill(os.getpid(), signal.SIGSEGV)
        if does.fail == "hang" and does.only_on == device:
            time.sleep(3600)
        return np.matmul(LEFT, RIGHT), device

    def parts(self, options: Options) -> frozenset[StepPart]:
        """The devices that it was given."""
        does = behaviour()
        return frozenset(part for part in PARTS if _cost(part, does, options.style))

    def trainer(
        self, workload: Workload, model: Model, data: Dataset, options: Options
    ) -> FakeTrainer:
        """A trainer whose loss falls by itself."""
        require_support(self.capabilities(), workload, options)
        return FakeTrainer(model, options, behaviour())


def _cost(part: StepPart, does: Behaviour, style: Style) -> float:
    """Return the seconds of a part of a step, 1 for yes."""
    if part == "optimizer":
        return does.optimizer_seconds
    if style == "fast" or part == "loss":
        return 0.0
    return {"fetch": float(does.fetches), "input": does.input_seconds, "copy": does.copy_seconds}[
        part
    ]


class FakeTrainer:
    """Queues steps on a device that computes in the background."""

    def __init__(self, model: Model, options: Options, does: Behaviour) -> None:
        self._does = does
        if does.needs_all_of:
            # For as long as the process lives
            self._memory = open(does.needs_all_of, "w")  # noqa: SIM115, PTH123
            try:
                fcntl.flock(self._memory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MemoryError("another process has it all") from None
        self._device = options.device
        self._style = options.style
        self._seed = options.seed
        if self._asked_for("kill-waiting"):
            threading.Thread(target=self._end_once_reached, daemon=True).start()
        costs = {
            part: 0.0 if part in options.without else _cost(part, does, options.style)
            for part in PARTS
        }
        self._speed = 1.0 if options.device == "cpu" else does.speedup
        self._step_seconds = does.step_seconds + costs["optimizer"]
        self._example_seconds = (
            model.training_flops / does.flops_per_second if does.flops_per_second else 0.0
        )
        self._host_seconds = costs["input"] + costs["copy"]
        self._host_seconds += does.dispatch_seconds if options.style == "idiomatic" else 0.0
        self._fetches = bool(costs["fetch"])
        self._busy_until = 0.0
        self._step = 0
        self._sizes: list[int] = []
        self._weights: Weights = {}

    def load(self, weights: Weights) -> None:
        """Keep the weights, and start again."""
        self._weights = dict(weights)
        self._step = 0

    def compile(self, plan: EpochPlan) -> bool:
        """Do nothing: there is nothing to compile."""
        return False

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Keep the sizes, and print as frameworks do."""
        self._sizes = list(plan.sizes)
        if self._does.noise:
            os.write(1, self._does.noise.encode())
            os.write(2, self._does.noise.encode())

    def train(self, steps: int, tick: Callable[[], None]) -> list[tuple[float, int]]:
        """Queue the steps; returns before they are done."""
        results = []
        for _ in range(steps):
            self._fail_if_asked()
            size = self._sizes.pop(0)
            if self._host_seconds:
                time.sleep(self._host_seconds)
            seconds = (self._step_seconds + size * self._example_seconds) / self._speed
            self._busy_until = max(self._busy_until, time.perf_counter()) + seconds
            if self._fetches:
                self.synchronize()
            loss = 2.0 * math.exp(-self._step / 200) + 0.05
            hits = int(size * (1 - min(loss, 2.0) / 2.2))
            results.append(
                (
                    math.nan
                    if self._asked_for("nan") and self._step >= self._does.at_step
                    else loss,
                    hits,
                )
            )
            self._step += 1
            tick()
        return results

    def synchronize(self) -> None:
        """Wait for the queue to run empty."""
        time.sleep(max(0.0, self._busy_until - time.perf_counter()))

    def read(self, results: Any) -> Steps:
        """Return the queued losses."""
        losses, hits = zip(*results, strict=True)
        return Steps(np.array(losses, dtype=np.float64), None, np.array(hits, dtype=np.int64))

    def evaluate(self, split: SplitName) -> Evaluation:
        """Return the results of a trained network."""
        loss = 2.0 * math.exp(-self._step / 200) + 0.05
        return Evaluation(loss, 1 - loss / 2.2)

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return equal outputs: there is no network."""
        return np.zeros((len(images), 10))

    def weights(self) -> Weights:
        """Return the loaded weights, moved a little by every step."""
        return {
            name: value + np.float32(1e-3 * self._step) for name, value in self._weights.items()
        }

    def averaged(self) -> Weights:
        """There is no average."""
        return self.weights()

    def settings(self) -> dict[str, Any]:
        """Return one setting, so that a test finds it in a record."""
        return {"asynchronous": True}

    def device_peak_bytes(self) -> int | None:
        """Return None: no memory is used."""
        return None

    def _asked_for(self, failure: str) -> bool:
        does = self._does
        is_side = does.only_on in ("", self._device, self._style)
        return does.fail == failure and is_side and does.only_seed in (0, self._seed)

    def _end_once_reached(self) -> None:
        """Kill this process, which waits for its turn, as soon as another process has written the
        file."""
        while not Path(self._does.reached).exists():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGKILL)

    def _fail_if_asked(self) -> None:
        if self._step != self._does.at_step:
            return
        if self._does.reached:
            Path(self._does.reached).touch()
        if self._asked_for("raise"):
            raise RuntimeError(self._does.message)
        if self._asked_for("memory"):
            raise MemoryError("the fake ran out of memory")
        if self._asked_for("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._asked_for("crash"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if self._asked_for("exit"):
            sys.stderr.write("last words\n")
            sys.stderr.flush()
            os._exit(7)
        if self._asked_for("hang"):
            time.sleep(3600)
