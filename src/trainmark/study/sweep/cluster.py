"""Ray, here and nowhere else: one that is started for the sweep and goes with it, or a cluster that is there.

Ray is told not to try again by itself (``max_retries=0``): who gives out the trials knows how often each was tried.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trainmark
from trainmark.errors import NotInstalled, UsageError
from trainmark.execute.plan import Task
from trainmark.execute.probe import PROBE_TIMEOUT_SECONDS, Interpreter, Seen
from trainmark.measure.host import usable_core_numbers
from trainmark.study.sweep import guard as guard_script
from trainmark.study.sweep.knock import knock, shortened
from trainmark.study.sweep.trial import Answers, ask_here, train_here
from trainmark.study.sweep.turns import Lost

SHUTDOWN_SECONDS = 4.0
"""Ray takes 1.5 where nothing is in its way."""
_STORE_BYTES = 80 * 2**20
"""Of shared memory: records are small, and Ray takes no less."""
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}


@dataclass(frozen=True)
class Resources:
    """What Ray sets aside for a trial; a fraction of a GPU is shared with other trials."""

    cpus: float
    gpus: float

    def fit(self, node: Mapping[str, float]) -> int:
        """How many trials fit on a node with so many."""
        asked = [(self.cpus, node.get("CPU", 0.0)), (self.gpus, node.get("GPU", 0.0))]
        # A third of a GPU three times is a whole one, whatever floating-point numbers say.
        return min((int(there / each + 1e-6) for each, there in asked if each), default=0)

    def __str__(self) -> str:
        gpus = f", {self.gpus:g} GPU" if self.gpus else ""
        return f"{self.cpus:g} CPU{gpus}"


class Cluster:
    """Carries trials out as tasks of Ray."""

    def __init__(self, ray: Any, resources: Resources) -> None:
        self._ray = ray
        self._running: dict[Any, int] = {}
        self.reserve(resources)

    def reserve(self, resources: Resources) -> None:
        """Set aside so much for each trial from now on; raises UsageError where no node has that."""
        self.resources = resources
        if not self.slots:
            raise _too_small(resources, _nodes(self._ray))

    @property
    def slots(self) -> int:
        """How many trials it can carry out at a time."""
        return sum(self.resources.fit(node["Resources"]) for node in self._ray.nodes() if node["Alive"])

    def ask(self, interpreter: Interpreter, backend: str) -> Seen:
        """What ``backend`` can do where trials are carried out; raises UsageError where nobody answers."""
        answer = self._remote(ask_here).remote(interpreter, backend)
        try:
            seen: Seen = self._ray.get(answer, timeout=PROBE_TIMEOUT_SECONDS)
        except self._ray.exceptions.RayError as error:
            raise UsageError(
                f"no node of the cluster could be asked about {backend}",
                expected="a node with trainmark's own dependencies (numpy, msgspec, psutil, ...) and the framework",
                found=_said(error),
            ) from error
        return seen

    def start(self, number: int, task: Task, seen: Answers) -> None:
        """Give ``task`` to Ray."""
        self._running[self._remote(train_here).remote(task, seen)] = number

    def ended(self, seconds: float) -> Iterator[tuple[int, Sequence[bytes] | Lost]]:
        """Trials that have ended, waiting for the first of them so long."""
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        for answer in done:
            yield self._running.pop(answer), self._result(answer)
        if not done and not self.slots:  # the nodes that could carry it out are gone, and Ray would wait for new ones
            reason = f"no node with {self.resources} is left"
            for number in [self._running.pop(answer) for answer in list(self._running)]:
                yield number, Lost(reason, again=False)

    def abandon(self) -> None:
        """End what is still running; the measured processes go with their workers."""
        for answer in self._running:
            with contextlib.suppress(Exception):  # on the way out nothing else can be done about it
                self._ray.cancel(answer, force=True)
        self._running.clear()

    def _remote(self, function: Callable[..., Any]) -> Any:
        asked = {"num_cpus": self.resources.cpus, "num_gpus": self.resources.gpus}
        return self._ray.remote(function).options(**asked, max_retries=0, retry_exceptions=False)

    def _result(self, answer: Any) -> Sequence[bytes] | Lost:
        errors = self._ray.exceptions
        try:
            records: list[bytes] = self._ray.get(answer)
        except errors.RayTaskError as error:  # an exception of ours, which another try would raise again
            return Lost(_said(error), again=False)
        except errors.WorkerCrashedError:  # Ray only says in which of its log files it might stand
            return Lost("its Ray worker died: killed, crashed, or out of memory", again=True)
        except errors.RayError as error:
            return Lost(f"its Ray worker died: {_said(error)}", again=True)
        return records


def require_ray() -> None:
    """Raise :class:`~trainmark.errors.NotInstalled` unless Ray is there."""
    if importlib.util.find_spec("ray") is None:
        raise NotInstalled(
            "trainmark sweep needs Ray, which is not installed", fix="Install it: pip install 'trainmark[ray]'"
        )


@contextlib.contextmanager
def local(resources: Resources, parallel: int | None, accelerators: int) -> Iterator[Cluster]:
    """A Ray of our own on this machine, which ends with us, however we end.

    Args:
        parallel: trials that must fit at a time, also where that is more than the machine has cores; None leaves it
            to the cores.
        accelerators: how many the backend sees; a trial that asks for more is refused before anything is started.

    Raises:
        UsageError: the machine has not the resources of a trial.
    """
    if resources.gpus > accelerators:
        raise _too_small(resources, f"{accelerators} GPU on this machine")
    cores = len(usable_core_numbers())
    cpus = max(cores, math.ceil(resources.cpus), math.ceil((parallel or 0) * resources.cpus))
    _own_environment()
    with (
        _guarded_folder() as folder,
        _connected(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _temp_dir=folder,
        ) as ray,
        _emptied_at_end(Cluster(ray, resources)) as cluster,
    ):
        yield cluster


@contextlib.contextmanager
def at(address: str, resources: Resources) -> Iterator[Cluster]:
    """The cluster at ``address``; its workers get this very trainmark, so versions can't differ.

    Raises:
        UsageError: no such address, nobody there who answers in time, or no node large enough.
    """
    knock(address)
    source = str(Path(trainmark.__file__).parent)
    with (
        _connected(address=address, runtime_env={"py_modules": [source]}) as ray,
        _emptied_at_end(Cluster(ray, resources)) as cluster,
    ):
        yield cluster


def _too_small(resources: Resources, found: str) -> UsageError:
    return UsageError(
        "no node has the resources of a trial",
        expected=f"a node with {resources}",
        found=found,
        fix="Ask for less with --cpus-per-trial or --gpus-per-trial.",
    )


def _nodes(ray: Any) -> str:
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return "; ".join(f"{node.get('CPU', 0):g} CPU, {node.get('GPU', 0):g} GPU" for node in nodes) or "no node"


@contextlib.contextmanager
def _connected(**options: Any) -> Iterator[Any]:
    """Ray, initialised so, and silent: what it has to say, it says on stdout, which is not its own."""
    import ray

    ends = signal.getsignal(signal.SIGTERM)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            try:
                ray.init(**_QUIET, **options)
            except SystemExit:  # SIGTERM while Ray had its own handler
                raise KeyboardInterrupt from None
            except Exception as error:  # Ray raises whatever went wrong below it
                raise UsageError("Ray can't be started", found=_said(error)) from error
            finally:
                signal.signal(signal.SIGTERM, ends)  # Ray puts its own in the place of ours
            yield ray
        finally:
            with _helped_along(options.get("_temp_dir")):
                ray.shutdown()


@contextlib.contextmanager
def _helped_along(folder: str | None) -> Iterator[None]:
    """Ends a Ray of our own that takes long to end.

    Where a batch system tells every process of a job to end, Ray's node waits half a minute for trials that are gone.
    """
    if folder is None:
        yield
        return
    late = threading.Timer(SHUTDOWN_SECONDS, guard_script.clear, (Path(folder), os.getpid()))
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


@contextlib.contextmanager
def _emptied_at_end(cluster: Cluster) -> Iterator[Cluster]:
    try:
        yield cluster
    finally:
        cluster.abandon()


@contextlib.contextmanager
def _guarded_folder() -> Iterator[str]:
    """A folder for Ray's sockets and logs, and somebody who sees to it that nothing is left of them."""
    folder = tempfile.mkdtemp(prefix="trainmark-ray-", dir="/tmp")  # sockets need a short path
    guard = subprocess.Popen(
        [sys.executable, "-I", guard_script.__file__, folder], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield folder
    finally:
        guard.communicate()


def _own_environment() -> None:
    """A Ray of our own tells nobody of itself, and lets nobody in: its key is drawn for this sweep alone."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a trial without a GPU of its own sees them all
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _said(error: BaseException) -> str:
    """The gist of an exception, which Ray fills with whole tracebacks."""
    cause = getattr(error, "cause", None)
    text = str(cause or error).strip()
    return shortened(" ".join(text.split())) or type(error).__name__
