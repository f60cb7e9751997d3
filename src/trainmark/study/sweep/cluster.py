"""Ray, here and nowhere else: one that is started for the sweep and goes with it, or a cluster that is there.

Ray is told not to try again by itself (``max_retries=0``): who gives out the trials knows how often each was tried.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
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
from trainmark.study.sweep.trial import Answers, ask_here, train_here
from trainmark.study.sweep.turns import Lost

PATIENCE_SECONDS = 10.0
"""With a cluster that does not answer; Ray itself would wait for two minutes, and then end the process."""
_STORE_BYTES = 80 * 2**20
"""Of shared memory: records are small, and Ray takes no less."""
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
_KNOCK = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"


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


def knock(address: str, patience: float = PATIENCE_SECONDS) -> None:
    """Raise UsageError unless a Ray cluster answers at ``address``: a process of its own asks, and is ended when it
    takes longer than ``patience`` seconds."""
    if address != "auto":
        _require_open(address, patience)
    asking = [sys.executable, "-c", _KNOCK, address]
    try:
        asked = subprocess.run(asking, capture_output=True, text=True, timeout=patience, check=False)
    except subprocess.TimeoutExpired:
        raise _unreachable(address, f"no answer within {patience:g} seconds") from None
    if asked.returncode:
        raise _unreachable(address, _last_words(asked.stderr))


def _require_open(address: str, patience: float) -> None:
    written = re.fullmatch(r"(?:ray://)?\[?([^\[\]/]+?)\]?:(\d{1,5})", address)
    if written is None or int(written[2]) > 65_535:
        raise UsageError(
            f"--address {address!r} can't be read", expected="auto, HOST:PORT or ray://HOST:PORT", found=repr(address)
        )
    try:
        socket.create_connection((written[1], int(written[2])), timeout=patience).close()
    except OSError as error:
        raise _unreachable(address, error.strerror or str(error)) from error


def _unreachable(address: str, found: str) -> UsageError:
    return UsageError(
        f"no Ray cluster answers at {address!r}",
        expected="the address of a running cluster: auto, HOST:PORT or ray://HOST:PORT",
        found=found,
        fix="Is it running (ray status)? Without --address trials run on this machine, with nothing to start.",
    )


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
            ray.shutdown()


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


def _last_words(text: str) -> str:
    """What Ray complained of: the error that was the cause, not where in Ray it arose."""
    complaints = re.findall(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    return f"{complaints[0][0]}: {_first_sentences(complaints[0][1])}" if complaints else "a process that died"


def _said(error: BaseException) -> str:
    """The gist of an exception, which Ray fills with whole tracebacks."""
    cause = getattr(error, "cause", None)
    text = str(cause or error).strip()
    return _first_sentences(" ".join(text.split())) or type(error).__name__


def _first_sentences(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:299]}…"
