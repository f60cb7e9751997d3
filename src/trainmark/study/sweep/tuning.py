"""Ray Tune runs the trials in parallel, stops bad ones, and retries those whose worker died.

No other file imports Ray. Tune's loop is a task on Ray, so that it works in the same way on this
machine and on a cluster. Results come through a queue, since the trials may run on other machines.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.util.queue import Queue

import trainmark
from trainmark.errors import TrainmarkError, UsageError
from trainmark.execute.parent.plan import Run
from trainmark.execute.parent.probe import PROBE_TIMEOUT_SECONDS, Interpreter, Seen
from trainmark.execute.parent.task import Task
from trainmark.measure.host import usable_core_numbers
from trainmark.scratch import scratch_folder
from trainmark.study.sweep import ray_cleanup as ray_cleanup
from trainmark.study.sweep.plan import SweepPlan
from trainmark.study.sweep.ray_address import require_reachable
from trainmark.study.sweep.trial import (
    Answers,
    Died,
    EpochReporter,
    Recorded,
    Report,
    ask_here,
    train_here,
)

_LOOK_EVERY_SECONDS = 0.25
"""Seconds between looks at whether Tune has ended, and at new results."""
_LONGEST_REASON = 300
"""Maximum length of the reason why a trial died, in characters."""
_SHUTDOWN_SECONDS = 4.0
"""Seconds that Ray may take to shut down.

It usually takes 1.5 s, but its node would wait half a minute for trials that a batch system has
killed.
"""
_STORE_BYTES = 80 * 2**20
"""Shared memory of Ray's object store; records are small, and this is Ray's minimum."""
_TUNE = {
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",  # --resume uses the records
    "TUNE_WARN_THRESHOLD_S": "60",
}


@dataclass(frozen=True)
class Resources:
    """What Ray reserves for a trial; trials can share a GPU by fractions."""

    cpus: float
    gpus: float

    def fit(self, node: Mapping[str, float]) -> int:
        """Return how many trials fit on a node with these resources."""
        wanted = [(self.cpus, node.get("CPU", 0.0)), (self.gpus, node.get("GPU", 0.0))]
        # Three thirds of a GPU must make a whole one, despite rounding.
        return min((int(there / each + 1e-6) for each, there in wanted if each), default=0)

    def __str__(self) -> str:
        cpus = f"{self.cpus:g} CPU"
        return f"{cpus}, {self.gpus:g} GPU" if self.gpus else cpus


@dataclass
class Cluster:
    """A connected Ray cluster.

    Args:
        resources: resources of a trial.
        scratch: folder for Tune's files; None uses the system's.
    """

    resources: Resources
    scratch: str | None = None

    def reserve(self, resources: Resources) -> None:
        """Use these resources for each trial; raises UsageError if no node has them."""
        self.resources = resources
        if not self.slots:
            nodes = _nodes()
            found = [f"{node.get('CPU', 0):g} CPU, {node.get('GPU', 0):g} GPU" for node in nodes]
            raise _too_small(resources, "; ".join(found))

    @property
    def slots(self) -> int:
        """Number of trials that can train at a time."""
        return sum(map(self.resources.fit, _nodes()))

    def ask(self, interpreter: Interpreter, backend: str) -> Seen:
        """Probe ``backend`` on a node; raises UsageError if no node answers."""
        try:
            answer = _remote(ask_here, self.resources).remote(interpreter, backend)
            seen: Seen = ray.get(answer, timeout=PROBE_TIMEOUT_SECONDS)
        except ray.exceptions.RayError as error:
            raise UsageError(
                f"no node of the cluster could probe {backend}",
                expected="a node with trainmark's dependencies (numpy, msgspec, psutil, ...) and "
                "the framework",
                found=_gist(error),
            ) from error
        return seen

    def train(
        self, planned: SweepPlan, *, at_once: int, retries: int, asha: bool
    ) -> Iterator[Recorded | Died]:
        """Train all trials of ``planned`` with Ray Tune.

        Args:
            at_once: maximum number of trials at a time.
            retries: retries of a trial whose worker died.
            asha: whether to stop bad trials early.
        """
        inbox = Queue(actor_options={"num_cpus": 0})
        tasks = {task.first.trial.number: task for task in planned.tasks if task.first.trial}
        work = _Work(tasks, planned.seen, planned.finished if asha else {}, inbox)
        scheduler = None
        if asha:
            is_text = planned.tasks[0].first.scheduled.workload.is_text
            scheduler = _asha(planned.epochs, text=is_text)
        options = {
            "scheduler": scheduler,
            "resources_per_trial": {"cpu": self.resources.cpus, "gpu": self.resources.gpus},
            "max_concurrent_trials": at_once,
            "max_failures": retries,
        }
        advice = "--resume trains the missing trials."
        over: list[Any] = []
        try:
            search = _remote(_search, Resources(0, 0)).remote(work, self.scratch, options)
            while not over:
                over, _ = ray.wait([search], timeout=_LOOK_EVERY_SECONDS)
                yield from inbox.get_nowait_batch(inbox.qsize())
                if not over and not self.slots:  # Tune would wait for new nodes
                    raise TrainmarkError(f"no node with {self.resources} is left", fix=advice)
            ray.get(over)
        except ray.exceptions.RayError as error:
            raise TrainmarkError("Ray Tune failed", found=_gist(error), fix=advice) from error


@contextlib.contextmanager
def local(resources: Resources, parallel: int | None, accelerators: int) -> Iterator[Cluster]:
    """Start Ray on this machine, after ``keep_private()``.

    It ends with this process, even if that is killed.

    Args:
        parallel: number of trials that must fit, even if the machine has fewer cores; None uses the
            cores.
        accelerators: number of accelerators that the backend sees; a trial can't have more.

    Raises:
        UsageError: the machine lacks the resources of a trial.
    """
    if resources.gpus > accelerators:
        raise _too_small(resources, f"{accelerators} GPU on this machine")
    cpus = max(len(usable_core_numbers()), math.ceil(max(parallel or 1, 1) * resources.cpus))
    with scratch_folder() as folder:
        cleanup_command = [sys.executable, "-I", ray_cleanup.__file__, folder]
        cleanup = subprocess.Popen(cleanup_command, stdin=subprocess.PIPE, start_new_session=True)
        late = threading.Timer(
            _SHUTDOWN_SECONDS, ray_cleanup.end_and_remove, (Path(folder), os.getpid())
        )
        late.daemon = True
        try:
            with _connected(
                late.start,
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                object_store_memory=_STORE_BYTES,
                _temp_dir=folder,
            ):
                yield Cluster(resources, folder)
        finally:
            late.cancel()
            cleanup.communicate()


@contextlib.contextmanager
def at(address: str, resources: Resources) -> Iterator[Cluster]:
    """Connect to the cluster at ``address``; its workers get this version of trainmark.

    Raises:
        UsageError: no cluster answers there in time, or no node is large enough.
    """
    require_reachable(address)
    source = str(Path(trainmark.__file__).parent)
    with _connected(address=address, runtime_env={"py_modules": [source]}):
        cluster = Cluster(resources)
        cluster.reserve(resources)
        yield cluster


@contextlib.contextmanager
def _connected(ending: Callable[[], None] | None = None, **options: Any) -> Iterator[None]:
    """Initialise Ray silently with ``options``, and shut it down after calling ``ending``."""
    ends = signal.getsignal(signal.SIGTERM)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            try:
                ray.init(log_to_driver=False, logging_level="ERROR", **options)
            except SystemExit:  # SIGTERM came while Ray had its own handler
                raise KeyboardInterrupt from None
            except Exception as error:  # Ray raises exceptions of many types
                raise UsageError("Ray can't be started", found=_gist(error)) from error
            finally:
                signal.signal(signal.SIGTERM, ends)  # Ray replaces ours
            yield
        finally:
            if ending is not None:
                ending()
            ray.shutdown()


@dataclass(frozen=True)
class _Work:
    """What every process of a sweep gets.

    Args:
        finished: reports of finished trials, which only repeat them.
    """

    tasks: Mapping[int, Task[Run]]
    seen: Answers
    finished: Mapping[int, Sequence[Report]]
    inbox: Queue


def _search(work: _Work, scratch: str | None, options: dict[str, Any]) -> None:
    """Run Ray Tune; finished trials come first, so that the scheduler can compare with them."""
    os.environ.update(_TUNE)
    with scratch_folder(Path(scratch) if scratch else None) as folder:
        tune.run(
            tune.with_parameters(_Trial, work=work),
            config={"trial": tune.grid_search([*work.finished, *work.tasks])},
            callbacks=[_Deaths(work.inbox)],
            storage_path=folder,
            reuse_actors=True,
            raise_on_failed_trial=False,
            verbose=0,
            **options,
        )


def _asha(epochs: int, *, text: bool) -> Any:
    # analysis/sweep ranks by these, too.
    metric, mode = ("test_loss", "min") if text else ("test_accuracy", "max")
    return tune.schedulers.ASHAScheduler(time_attr="epoch", metric=metric, mode=mode, max_t=epochs)


class _Trial(tune.Trainable):
    """Trains one trial after the other, each in a thread that reports its epochs."""

    def setup(self, config: dict[str, Any], work: _Work) -> None:  # noqa: ARG002
        self._work = work
        self._thread = ThreadPoolExecutor(1)
        self._training: Future[None] | None = None

    def step(self) -> Report:
        """Return the next epoch's report; after the last, repeat it as done.

        The first call starts the training.
        """
        if self._training is None:
            self._last: Report = {"epoch": 0, "test_accuracy": 0.0, "test_loss": math.inf}
            self._reports: queue.SimpleQueue[Report | None] = queue.SimpleQueue()
            self._stopped = threading.Event()
            self._training = self._thread.submit(self._train, self.config["trial"])
        report = self._reports.get()
        if report is None:
            self._training.result()  # raises the training's exception
            return {**self._last, "done": True}
        self._last = report
        return report

    def reset_config(self, new_config: dict[str, Any]) -> bool:  # noqa: ARG002
        """Prepare for another trial."""
        self.cleanup()
        return True

    def cleanup(self) -> None:
        """End the training if it still runs; its record is sent before this returns."""
        if self._training:
            self._stopped.set()
            self._training.exception()
            self._training = None

    def _train(self, number: int) -> None:
        try:
            for report in self._work.finished.get(number, ()):
                self._reports.put(report)
            task = self._work.tasks.get(number)
            if task:
                reporter = EpochReporter(self._reports.put, self._stopped.is_set)
                records = train_here(task, self._work.seen, reporter)
                self._work.inbox.put(Recorded(number, records))
        finally:
            self._reports.put(None)


class _Deaths(tune.Callback):
    """Reports trials that died."""

    def __init__(self, inbox: Queue) -> None:
        self._inbox = inbox

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:  # noqa: ARG002
        """Report a trial that is retried."""
        self._announce(trial, retried=True)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:  # noqa: ARG002
        """Report a trial whose last retry failed."""
        self._announce(trial, retried=False)

    def _announce(self, trial: Any, *, retried: bool) -> None:
        text = Path(trial.error_file).read_text(errors="replace") if trial.error_file else ""
        # Tune appends the message or the traceback of each failure.
        lines = text.rpartition("Failure # ")[2].split("\n")[1:]
        error_lines = [line for line in lines if line.strip()] or ["Ray Tune gave no reason"]
        reason = error_lines[-1][:_LONGEST_REASON]
        if error_lines[0].startswith("The actor died"):  # ray.exceptions.ActorDiedError
            reason = "its Ray worker died: killed, crashed, or out of memory"
        often = f" ({trial.num_failures} times)" if trial.num_failures > 1 and not retried else ""
        self._inbox.put(Died(trial.config["trial"], f"{reason}{often}", retried))


def _remote(function: Any, resources: Resources) -> Any:
    return ray.remote(function).options(
        num_cpus=resources.cpus, num_gpus=resources.gpus, max_retries=0
    )


def _nodes() -> list[Mapping[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _too_small(resources: Resources, found: str) -> UsageError:
    return UsageError(
        "no node has the resources of a trial",
        expected=f"a node with {resources}",
        found=found or "no node",
        fix="Reduce --cpus-per-trial or --gpus-per-trial.",
    )


def _gist(error: BaseException) -> str:
    """Shorten an exception's message, which Ray fills with whole tracebacks."""
    text = " ".join(str(getattr(error, "cause", None) or error).split())
    if len(text) > _LONGEST_REASON:
        return f"{text[:149]} … {text[-149:]}"
    return text or type(error).__name__
