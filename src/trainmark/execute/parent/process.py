"""Measured processes: start them, talk to them, and always end them."""

from __future__ import annotations

import contextlib
import os
import re
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, TypedDict, Unpack

import trainmark
from trainmark import processes
from trainmark.backends.inductor import CACHE_VARIABLE
from trainmark.execute.parent.check import read
from trainmark.execute.parent.undisturbed import undisturbed
from trainmark.execute.protocol.answers import Answer, Diverged, Done, Failed, Waiting
from trainmark.execute.protocol.copies import without_copy
from trainmark.execute.protocol.wire import (
    SCRATCH,
    Channel,
    position,
    shared_page,
    signal_name,
)
from trainmark.execute.protocol.worker_commands import WorkerCommand
from trainmark.measure.control_group import oom_kills
from trainmark.scratch import compile_cache, scratch_folder

BOOTSTRAP = Path(trainmark.__file__).parent / "execute" / "worker" / "bootstrap.py"
TAIL_BYTES = 8_192
"""Bytes from the end of a process's output that are kept."""
_MOST_READS = 1_000
"""Most reads of the output of a command that has ended, whose children may print forever."""
LOOK_EVERY_SECONDS = 0.1
"""Seconds between two samples of a process."""
OUT_OF_MEMORY = (
    "out of memory: the system killed the process (SIGKILL) at the memory limit of "
    "its control group"
)
_GRACE_SECONDS = 5.0
"""Seconds that a process may take to end once it is done, or its output to close after its end."""
_FAREWELL_SECONDS = 3.0
"""Seconds that a process gets to end the children that left its group, which only it can find. On a
busy machine this takes more than one."""
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NPROC",
)
"""Environment variables that set the number of threads of numerical libraries."""

Source = Channel | IO[bytes]
"""Source of a process's messages or output."""
EndStatus = Literal["done", "died", "timeout"]


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    Args:
        status: ``done`` if it reported success; ``timeout`` if trainmark ended it; ``died`` for
            every other end.
        reason: for the user; None if done.
        tail: the end of its output.
    """

    status: EndStatus
    reason: str | None
    tail: str


class Worker:
    """One measured process, as a context manager: the process is ended on exit.

    Args:
        python: the interpreter.
        request: makes the request, given the reading of ``time.perf_counter`` at the start.
        on_answer: called with every message.
        threads: CPU threads, set by environment variables.
        timeout: seconds after which the process is ended, without pauses.
        on_output: called with everything that it prints.

    Attributes:
        sources: its open sources of messages and output, each with a function that reads it; False
            at its end.
    """

    def __init__(
        self,
        python: Path,
        request: Callable[[float], WorkerCommand],
        on_answer: Callable[[Answer], None],
        threads: int | None = None,
        timeout: float | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> None:
        self._python = python
        self._request = request
        self._on_answer = on_answer
        self.origin = 0.0
        self._threads = threads
        self._timeout = timeout
        self._on_output = on_output
        self._tail = b""
        self._printed_bytes = 0
        self._reason: str | None = None
        self.sources: dict[Source, Callable[[], bool]] = {}
        self._hung_up_at: float | None = None
        self._done_at: float | None = None
        self._gone_at: float | None = None
        self._paused_at: float | None = None
        self._paused_seconds = 0.0

    def __enter__(self) -> Worker:
        ours, theirs = socket.socketpair()
        self._line = ours
        with contextlib.ExitStack() as stack:
            stack.callback(ours.close)
            stack.callback(theirs.close)  # the process may fail to start
            scratch = stack.enter_context(scratch_folder())
            # what is left if the process and the supervisor of its command were ended together
            stack.callback(processes.end_marked, f"{SCRATCH}={scratch}")
            shared = shared_page()
            stack.callback(os.close, shared)
            self._kills = oom_kills()
            self.origin = time.perf_counter()
            with undisturbed():  # otherwise a signal could leave an unknown process
                self._process = subprocess.Popen(
                    [str(self._python), str(BOOTSTRAP), str(theirs.fileno()), str(shared)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs.fileno(), shared),
                    env=_environment(self._python, self._threads) | {SCRATCH: scratch},
                    # Ctrl-C reaches the parent alone, and the whole group can be ended
                    start_new_session=True,
                )
                stack.callback(self._end_process)
            theirs.close()
            self._channel = Channel(ours)
            with contextlib.suppress(OSError):  # it died before it could listen; its exit says why
                self._channel.send(self._request(self.origin))
            self.steps = position(shared)
            assert self._process.stdout is not None
            self.sources = {self._channel: self._answers, self._process.stdout: self._prints}
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; harmless if it has ended."""
        self._stack.close()

    def hang_up(self) -> None:
        """Ask the process to end, without waiting for it, so that several can end together."""
        if self._hung_up_at is None and self.sources:
            self._hung_up_at = time.perf_counter()
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)

    def _end_process(self) -> None:
        since = 0.0 if self._hung_up_at is None else time.perf_counter() - self._hung_up_at
        end(self._process, self._line, max(_FAREWELL_SECONDS - since, 0.0))

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    def send(self, message: object) -> None:
        """Send a message; ignored if the process has ended, since its exit says why."""
        if self._paused_at is not None:
            self._paused_seconds += time.perf_counter() - self._paused_at
            self._paused_at = None
        with contextlib.suppress(OSError):
            self._channel.send(message)

    def attend(self, ready: Iterable[Source]) -> Ending | None:
        """Read what has arrived; returns how the process ended, once it has.

        Args:
            ready: those of its ``sources`` that are readable or closed.

        Raises:
            ProtocolError: the process broke the protocol.
        """
        for source in ready:
            if not self.sources[source]():
                del self.sources[source]
        now = time.perf_counter()
        active = (self._paused_at or now) - self.origin - self._paused_seconds
        if self._timeout is not None and active > self._timeout:
            return self._ending("timeout", "exceeded --timeout")
        if self._gone_at is None and self._process.poll() is not None:
            self._gone_at = now
        elif self._gone_at is not None and (not ready or now > self._gone_at + _GRACE_SECONDS):
            # A grandchild may keep the pipe open or print forever, but all messages of the process
            # have been read.
            return self._end()
        # Once it is done it has sent everything, so it need not be waited for any longer.
        hangs = self._done_at is not None and now > self._done_at + _GRACE_SECONDS
        return self._end() if hangs or not self.sources else None

    def _answers(self) -> bool:
        """Read its messages; False when it has closed the connection."""
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
                self._on_answer(answer)
        return messages is not None

    def _prints(self) -> bool:
        """Read its output; False at the end."""
        assert self._process.stdout is not None
        printed = os.read(self._process.stdout.fileno(), 1 << 16)
        self._tail = (self._tail + printed)[-TAIL_BYTES:]
        self._printed_bytes += len(printed)
        if self._on_output is not None:
            self._on_output(printed)
        return bool(printed)

    def read_printed(self) -> None:
        """Read what it has printed until now, without waiting for more.

        The last lines of a command may arrive after the message that it has ended.
        """
        stdout = self._process.stdout
        if stdout is None or stdout not in self.sources:
            return
        waiting = select.poll()
        waiting.register(stdout, select.POLLIN)
        for _ in range(_MOST_READS):
            if not waiting.poll(0) or not self._prints():
                return

    def _last_lines(self) -> str:
        """Return the end of its output, in whole lines.

        A secret that is cut in two could not be recognised, so it would not be masked.
        """
        tail = self._tail
        if self._printed_bytes > len(tail):
            *_, whole_lines = re.split(rb"[\r\n]", tail, maxsplit=1)
            if whole_lines.strip():
                tail = whole_lines
        return tail.decode(errors="replace").replace("\0", "")

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
        # The user does not know the copy of the working folder.
        return Ending(status, reason, without_copy(self._last_lines()))


class Listener:
    """Waits for messages and output of several workers."""

    def __init__(self) -> None:
        self._look_at = 0.0

    def wait(self, workers: Iterable[Worker]) -> dict[Worker, list[Source]]:
        """Return the readable sources of each worker; none after :data:`LOOK_EVERY_SECONDS`."""
        received: dict[Worker, list[Source]] = {worker: [] for worker in workers}
        with selectors.DefaultSelector() as selector:
            for worker in received:
                for source in worker.sources:
                    selector.register(source, selectors.EVENT_READ, worker)
            for key, _ in selector.select(max(self._look_at - time.perf_counter(), 0.0)):
                received[key.data].append(key.fileobj)  # type: ignore[arg-type]
        return received

    def is_time_to_sample(self) -> bool:
        """Return True a few times a second, at a steady pace."""
        now = time.perf_counter()
        if now < self._look_at:
            return False
        self._look_at = max(self._look_at + LOOK_EVERY_SECONDS, now)
        return True


class AskOptions(TypedDict, total=False):
    """Options of :func:`ask`: those of :class:`Worker`, and ``on_steps``.

    It is called at a steady pace, a few times a second, with the number of steps counted so far.
    """

    on_answer: Callable[[Answer], None]
    on_steps: Callable[[int], None]
    threads: int | None
    timeout: float | None


def ask(
    python: Path, request: WorkerCommand, **options: Unpack[AskOptions]
) -> tuple[list[Answer], Ending]:
    """Return all answers of a new process to ``request``, and how it ended.

    Raises:
        ProtocolError: the process broke the protocol; it has been ended.
    """
    (found,) = ask_all([(python, request)], **options)
    return found


def ask_all(
    questions: Sequence[tuple[Path, WorkerCommand]],
    *,
    at_once: int = 1,
    **options: Unpack[AskOptions],
) -> Iterator[tuple[list[Answer], Ending]]:
    """Yield what :func:`ask` returns for each question, in their order.

    ``at_once`` processes run at the same time.

    Raises:
        ProtocolError: a process broke the protocol; all have been ended.
    """
    listener = Listener()
    workers = list[tuple[Worker, list[Answer]]]()
    endings = dict[Worker, Ending]()
    with contextlib.ExitStack() as stack:
        for number in range(len(questions)):
            while number >= len(workers) or workers[number][0] not in endings:
                if len(workers) < min(len(endings) + at_once, len(questions)):
                    workers.append(_asked(*questions[len(workers)], options))
                    stack.enter_context(workers[-1][0])
                live = [worker for worker, _ in workers if worker not in endings]
                ready = listener.wait(live)
                for worker in live:
                    ending = worker.attend(ready[worker])
                    if ending is not None:
                        endings[worker] = ending
                        worker.close()
                if (
                    listener.is_time_to_sample()
                    and live[-1] not in endings
                    and "on_steps" in options
                ):
                    options["on_steps"](live[-1].steps())
            worker, answers = workers[number]
            yield answers, endings[worker]


def _asked(
    python: Path, request: WorkerCommand, options: AskOptions
) -> tuple[Worker, list[Answer]]:
    """Return a worker for ``request``, and the list of its answers, which grows."""
    answers: list[Answer] = []

    def collect(answer: Answer) -> None:
        answers.append(answer)
        if "on_answer" in options:
            options["on_answer"](answer)

    def make_request(_: float) -> WorkerCommand:
        return request

    limits = options.get("threads"), options.get("timeout")
    return Worker(python, make_request, collect, *limits), answers


def end(
    process: subprocess.Popen[bytes], line: socket.socket, seconds: float = _FAREWELL_SECONDS
) -> None:
    """End the process and everything it started; harmless if it has ended.

    The connection is closed first, since only the process itself can find children that left its
    group; it then gets some ``seconds`` to end them.
    """
    if process.poll() is None:
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def _cause(code: int | None) -> str:
    if code is None:
        return "the process closed the connection without ending"
    if code < 0:
        name = signal_name(code)
        hint = " (often because the system ran out of memory)" if name == "SIGKILL" else ""
        return f"the process was killed by {name}{hint}"
    return f"the process ended early, with exit code {code}"


def _environment(python: Path, threads: int | None) -> dict[str, str]:
    environment = dict(os.environ)
    if str(python) != sys.executable:
        # These variables are meant for trainmark's own interpreter.
        for variable in ("PYTHONPATH", "PYTHONHOME"):
            environment.pop(variable, None)
    if threads is not None:
        environment.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    environment.setdefault(CACHE_VARIABLE, compile_cache())
    # Without this, the first side takes nearly all of the GPU's memory.
    environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if sys.platform == "darwin":
        environment.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "0")
    return environment
