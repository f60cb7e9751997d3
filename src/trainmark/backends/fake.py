"""A backend that trains nothing, asynchronously: for tests of everything around a backend.

Steps are queued and 'finish' later, so whoever reads the clock without ``synchronize`` measures nearly nothing, and
that fails a test on any laptop. ``TRAINMARK_FAKE`` holds JSON that says how it behaves, see :class:`Behaviour`.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.base import (
    ALL_KINDS,
    STYLES,
    Capabilities,
    Device,
    EpochPlan,
    Evaluation,
    Options,
    SplitName,
    Steps,
    require_support,
)
from trainmark.backends.examination import LEFT, RIGHT, Examination
from trainmark.data.dataset import Dataset
from trainmark.workload.model import Model, Weights
from trainmark.workload.spec import Workload


@dataclass(frozen=True)
class Behaviour:
    """What the fake does.

    Args:
        step_seconds: duration of a step on ``cpu``; ``cuda:0`` is ``speedup`` times faster.
        at_step: when ``fail`` happens.
        fail: ``raise``, ``kill`` (SIGKILL), ``crash`` (SIGSEGV), ``hang``, ``memory`` (MemoryError), ``nan`` or
            ``exit``.
        only_on: the device on which ``fail`` happens; empty is every one.
        noise: written on stdout and stderr at every epoch, as frameworks do.
    """

    step_seconds: float = 0.001
    speedup: float = 4.0
    at_step: int = 0
    fail: str = ""
    only_on: str = ""
    noise: str = ""


def behaviour() -> Behaviour:
    """The behaviour that the environment asks for."""
    data = json.loads(os.environ.get("TRAINMARK_FAKE", "{}"))
    return Behaviour(**{field.name: data[field.name] for field in fields(Behaviour) if field.name in data})


class FakeBackend:
    """Two devices, ``cpu`` and ``cuda:0``, neither of which is there."""

    def capabilities(self) -> Capabilities:
        """Everything any workload asks for."""
        devices = (
            Device("cpu", "fake CPU", "cpu", None, ("fp32",)),
            Device("cuda:0", "fake GPU", "accelerator", 2**30, ("fp32", "bf16")),
        )
        return Capabilities("fake", "1.0", STYLES, devices, ALL_KINDS, {"fake": "1.0"})

    def examine(self) -> Examination:
        """Built for a GPU that is not there."""
        return Examination("CUDA 13.0", ("sm_90",))

    def multiply(self, device: str) -> tuple[NDArray[Any], str]:
        """A product; a device that is to crash or hang does so here, too."""
        does = behaviour()
        if does.fail == "crash" and does.only_on == device:
            os.kill(os.getpid(), signal.SIGSEGV)
        if does.fail == "hang" and does.only_on == device:
            time.sleep(3600)
        return np.matmul(LEFT, RIGHT), device

    def trainer(self, workload: Workload, model: Model, data: Dataset, options: Options) -> FakeTrainer:  # noqa: ARG002
        """A trainer whose loss falls by itself."""
        require_support(self.capabilities(), workload, options)
        return FakeTrainer(options, behaviour())


class FakeTrainer:
    """Queues steps on a device that lives in the future."""

    def __init__(self, options: Options, does: Behaviour) -> None:
        self._does = does
        self._device = options.device
        self._step_seconds = does.step_seconds / (1 if options.device == "cpu" else does.speedup)
        self._busy_until = 0.0
        self._step = 0
        self._sizes: list[int] = []
        self._weights: Weights = {}

    def load(self, weights: Weights) -> None:
        """Keep the weights, start over."""
        self._weights = dict(weights)
        self._step = 0

    def compile(self, plan: EpochPlan) -> bool:  # noqa: ARG002
        """Nothing to compile."""
        return False

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Take the sizes, make the noise that frameworks make."""
        self._sizes = list(plan.sizes)
        if self._does.noise:
            os.write(1, self._does.noise.encode())
            os.write(2, self._does.noise.encode())

    def train(self, steps: int, tick: Callable[[], None]) -> list[tuple[float, int]]:
        """Queue the steps; returns before they are done."""
        results = []
        for _ in range(steps):
            self._fail_if_asked()
            self._busy_until = max(self._busy_until, time.perf_counter()) + self._step_seconds
            loss = 2.0 * math.exp(-self._step / 200) + 0.05
            hits = int(self._sizes.pop(0) * (1 - min(loss, 2.0) / 2.2))
            results.append((math.nan if self._asked_for("nan") and self._step >= self._does.at_step else loss, hits))
            self._step += 1
            tick()
        return results

    def synchronize(self) -> None:
        """Wait for the queue to run empty."""
        time.sleep(max(0.0, self._busy_until - time.perf_counter()))

    def read(self, results: Any) -> Steps:
        """What was queued."""
        losses, hits = zip(*results, strict=True)
        return Steps(np.array(losses, dtype=np.float64), None, np.array(hits, dtype=np.int64))

    def evaluate(self, split: SplitName) -> Evaluation:  # noqa: ARG002
        """What a trained network would say."""
        loss = 2.0 * math.exp(-self._step / 200) + 0.05
        return Evaluation(loss, 1 - loss / 2.2)

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """No network, so no opinion."""
        return np.zeros((len(images), 10))

    def weights(self) -> Weights:
        """The weights as they came."""
        return dict(self._weights)

    def settings(self) -> dict[str, Any]:
        """One setting, so that it can be looked for in a record."""
        return {"asynchronous": True}

    def device_peak_bytes(self) -> int | None:
        """Nothing was held."""
        return None

    def _asked_for(self, failure: str) -> bool:
        return self._does.fail == failure and self._does.only_on in ("", self._device)

    def _fail_if_asked(self) -> None:
        if self._step != self._does.at_step:
            return
        if self._asked_for("raise"):
            raise RuntimeError("the fake was asked to fail")
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
