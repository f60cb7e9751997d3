"""Measured processes, from their start to their end: spoken to, listened to, and never left behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Literal

import trainmark
from trainmark.execute.parent.check import read
from trainmark.execute.parent.scratch import scratch_folder
from trainmark.execute.parent.undisturbed import undisturbed
from trainmark.execute.protocol.answers import Answer, Diverged, Done, Failed, Waiting
from trainmark.execute.protocol.requests import Request
from trainmark.execute.protocol.wire import SCRATCH, Channel, position, shared_page, signal_name
from trainmark.measure.control_group import oom_kills

BOOTSTRAP = Path(trainmark.__file__).parent / "execute" / "worker" / "bootstrap.py"
TAIL_BYTES = 8_192
LOOK_EVERY_SECONDS = 0.1
OUT_OF_MEMORY = "out of memory: the system killed the process (SIGKILL), since its control group had no more to give"
_GRACE_SECONDS = 5.0
_FAREWELL_SECONDS = 1.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NPROC")


Source = Channel | IO[bytes]
"""What a process is heard by."""
EndStatus = Literal["done", "died", "timeout"]


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    Args:
        status: ``done`` when it did what it was asked, and said so; ``died`` covers every other end that was not ours.
        reason: for people, None when done.
        tail: the end of what it printed.
    """

    status: EndStatus
    reason: str | None
    tail: str


class Worker:
    """One measured process. A context manager: inside it the process lives, behind it it is gone.

    Args:
        python: the interpreter.
        request: makes the request, given the reading of ``time.perf_counter`` at the start.
        hear: called with every message.
        threads: of the libraries that can only be told by the environment.
        timeout: seconds after which the process is ended, pauses left out.
    """

    def __init__(
        self,
        python: Path,
        request: Callable[[float], Request],
        *,
        hear: Callable[[Answer], None],
        threads: int | None = None,
        timeout: float | None = None,
    ) -> None:
        self._python, self._request, self._hear = python, request, hear
        self.origin = 0.0
        self._threads, self._timeout = threads, timeout
        self._tail = b""
        self._reason: str | None = None
        self._sources: dict[Source, Callable[[], bool]] = {}
        self._done_at: float | None = None
        self._gone_at: float | None = None
        self._paused_at: float | None = None
        self._paused_seconds = 0.0

    def __enter__(self) -> Worker:
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as stack:
            stack.callback(ours.close)
            stack.callback(theirs.close)  # where nobody can be started
            scratch = stack.enter_context(scratch_folder())
            shared = shared_page()
            stack.callback(os.close, shared)
            self._kills = oom_kills()
            self.origin = time.perf_counter()
            with undisturbed():  # or nobody would know of it
                self._process = subprocess.Popen(
                    [str(self._python), str(BOOTSTRAP), str(theirs.fileno()), str(shared)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs.fileno(), shared),
                    env=_environment(self._python, self._threads) | {SCRATCH: scratch},
                    start_new_session=True,  # Ctrl-C reaches the parent alone, and the whole group can be ended
                )
                stack.callback(end, self._process, ours)
            theirs.close()
            self._channel = Channel(ours)
            with contextlib.suppress(OSError):  # it died before it could listen; its end tells why
                self._channel.send(self._request(self.origin))
            self.steps = position(shared)
            assert self._process.stdout is not None
            self._sources = {
                self._channel: self._answers,
                self._process.stdout: self._prints,
            }
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._stack.close()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def sources(self) -> Iterable[Source]:
        """What it can be heard by, as long as that is open."""
        return tuple(self._sources)

    def send(self, message: object) -> None:
        """Say something; who has gone does not hear it, and its end tells why."""
        if self._paused_at is not None:
            self._paused_seconds += time.perf_counter() - self._paused_at
            self._paused_at = None
        with contextlib.suppress(OSError):
            self._channel.send(message)

    def attend(self, ready: Iterable[Source]) -> Ending | None:
        """Take in what has arrived; how the process ended, once it has.

        Args:
            ready: those of its ``sources`` that have something, or have ended.

        Raises:
            ProtocolError: the process said what it should not.
        """
        for source in ready:
            if not self._sources[source]():
                del self._sources[source]
        now = time.perf_counter()
        if self._timeout is not None and self._active_seconds(now) > self._timeout:
            return self._ending("timeout", "took longer than --timeout allows")
        if self._gone_at is None and self._process.poll() is not None:
            self._gone_at = now
        elif self._gone_at is not None and (not ready or now > self._gone_at + _GRACE_SECONDS):
            # A grandchild may hold the pipe open, or print, for ever; but what the process said has been heard.
            return self._end()
        hangs = self._done_at is not None and now > self._done_at + _GRACE_SECONDS  # it has said all
        return self._end() if hangs or not self._sources else None

    def _active_seconds(self, now: float) -> float:
        """Since the start, without pauses."""
        return (self._paused_at or now) - self.origin - self._paused_seconds

    def _answers(self) -> bool:
        """Take in what it said; False when it has hung up."""
        messages = self._channel.receive()
        for message in messages or ():
            answer = read(message)
            match answer:
                case Done():
                    self._done_at = time.perf_counter()
                case Waiting():
                    self._paused_at = time.perf_counter()
                case Failed() | Diverged():
                    self._reason = answer.reason
            if answer is not None:
                self._hear(answer)
        return messages is not None

    def _prints(self) -> bool:
        """Take in what it printed; False at its end."""
        assert self._process.stdout is not None
        printed = os.read(self._process.stdout.fileno(), 1 << 16)
        self._tail = (self._tail + printed)[-TAIL_BYTES:]
        return bool(printed)

    def _end(self) -> Ending:
        if self._done_at is not None:
            return self._ending("done" if self._reason is None else "died", self._reason)
        try:
            code = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        if code == -signal.SIGKILL and (oom_kills() or 0) > (self._kills or 0):
            return self._ending("died", OUT_OF_MEMORY)
        return self._ending("died", self._reason or _cause(code))

    def _ending(self, status: EndStatus, reason: str | None) -> Ending:
        return Ending(status, reason, self._tail.decode(errors="replace").replace("\0", ""))


class Ears:
    """Waits for the next thing that any of some workers says."""

    def __init__(self) -> None:
        self._look_at = 0.0

    def wait(self, workers: Iterable[Worker]) -> dict[Worker, list[Source]]:
        """What each of ``workers`` has to say; nothing of any after :data:`LOOK_EVERY_SECONDS`."""
        heard: dict[Worker, list[Source]] = {worker: [] for worker in workers}
        with selectors.DefaultSelector() as selector:
            for worker in heard:
                for source in worker.sources:
                    selector.register(source, selectors.EVENT_READ, worker)
            for key, _ in selector.select(max(self._look_at - time.perf_counter(), 0.0)):
                heard[key.data].append(key.fileobj)  # type: ignore[arg-type]
        return heard

    def is_time_to_look(self) -> bool:
        """A few times a second, at a steady pace."""
        now = time.perf_counter()
        if now < self._look_at:
            return False
        self._look_at = max(self._look_at + LOOK_EVERY_SECONDS, now)
        return True


def run_worker(
    python: Path,
    request: Callable[[float], Request],
    *,
    hear: Callable[[Answer], None],
    born: Callable[[int], None] = lambda _: None,
    look: Callable[[int], None] = lambda _: None,
    threads: int | None = None,
    timeout: float | None = None,
) -> Ending:
    """Start ``python``, send it the request, and listen until it is gone.

    Args:
        born: called with the process's id.
        look: called at a steady pace, a few times a second, with the number of steps counted so far.

    The others are those of :class:`Worker`.

    Raises:
        ProtocolError: the process said what it should not; it has been ended.
    """
    ears = Ears()
    with Worker(python, request, hear=hear, threads=threads, timeout=timeout) as worker:
        born(worker.pid)
        while (ending := worker.attend(ears.wait([worker])[worker])) is None:
            if ears.is_time_to_look():
                look(worker.steps())
    return ending


def ask(
    python: Path,
    request: Request,
    *,
    hear: Callable[[Answer], None] = lambda _: None,
    look: Callable[[int], None] = lambda _: None,
    threads: int | None = None,
    timeout: float | None = None,
) -> tuple[list[Answer], Ending]:
    """All answers to ``request`` of a new process, and how it ended; the arguments are those of :func:`run_worker`."""
    answers: list[Answer] = []

    def collect(answer: Answer) -> None:
        answers.append(answer)
        hear(answer)

    ending = run_worker(python, lambda _: request, hear=collect, look=look, threads=threads, timeout=timeout)
    return answers, ending


def end(process: subprocess.Popen[bytes], line: socket.socket) -> None:
    """End the process and everything it started; harmless when it is gone.

    It is told first, by hanging up, since it alone can find what has left its group; then it has a moment.
    """
    if process.poll() is None:
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_FAREWELL_SECONDS)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def _cause(code: int | None) -> str:
    if code is None:
        return "the process hung up without ending"
    if code < 0:
        name = signal_name(code)
        hint = " (often the system's answer to too little memory)" if name == "SIGKILL" else ""
        return f"the process was killed by {name}{hint}"
    return f"the process ended with exit code {code} before it was done"


def _environment(python: Path, threads: int | None) -> dict[str, str]:
    environment = dict(os.environ)
    if str(python) != sys.executable:
        for variable in ("PYTHONPATH", "PYTHONHOME"):  # they speak of this interpreter, not of that one
            environment.pop(variable, None)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or one side takes the GPU's memory from others
    if sys.platform == "darwin":
        environment.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "0")
    return environment
