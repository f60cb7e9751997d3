"""One measured process, from its start to its end: spoken to, listened to, and never left behind."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import trainmark
from trainmark.execute.parent.check import read
from trainmark.execute.parent.scratch import scratch_folder
from trainmark.execute.parent.undisturbed import undisturbed
from trainmark.execute.protocol.answers import Answer, Diverged, Done, Failed
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


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    Args:
        status: ``done`` when it did what it was asked, and said so; ``died`` covers every other end that was not ours.
        reason: for people, None when done.
        tail: the end of what it printed.
    """

    status: Literal["done", "died", "timeout"]
    reason: str | None
    tail: str


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
        request: makes the request, given the reading of ``time.perf_counter`` at the start.
        hear: called with every message.
        born: called with the process's id.
        look: called at a steady pace, a few times a second, with the number of steps counted so far.
        threads: of the libraries that can only be told by the environment.
        timeout: seconds after which the process is ended.

    Raises:
        ProtocolError: the process said what it should not; it has been ended.
    """
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        stack.callback(ours.close)
        stack.callback(theirs.close)  # where nobody can be started
        scratch = stack.enter_context(scratch_folder())
        shared = shared_page()
        stack.callback(os.close, shared)
        kills = oom_kills()
        origin = time.perf_counter()
        with undisturbed():  # or nobody would know of it
            process = subprocess.Popen(
                [str(python), str(BOOTSTRAP), str(theirs.fileno()), str(shared)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(), shared),
                env=_environment(python, threads) | {SCRATCH: scratch},
                start_new_session=True,  # Ctrl-C reaches the parent alone, and the whole group can be ended
            )
            stack.callback(end, process, ours)
        theirs.close()
        channel = Channel(ours)
        with contextlib.suppress(OSError):  # it died before it could listen; its end tells why
            channel.send(request(origin))
        counted = position(shared)
        born(process.pid)
        deadline = None if timeout is None else origin + timeout
        ending = _listen(process, channel, _Heard(hear), lambda: look(counted()), deadline)
        killed = ending.status == "died" and process.returncode == -signal.SIGKILL
        if killed and (oom_kills() or 0) > (kills or 0):
            return dataclasses.replace(ending, reason=OUT_OF_MEMORY)
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


@dataclass
class _Heard:
    """What has come of a process so far: its answers, passed on, and the end of what it printed."""

    hear: Callable[[Answer], None]
    tail: bytes = b""
    reason: str | None = None
    done_at: float | None = None

    def answers(self, channel: Channel) -> bool:
        """Take in what has arrived; False when the process has hung up."""
        messages = channel.receive()
        for message in messages or ():
            answer = read(message)
            if isinstance(answer, Done):
                self.done_at = time.perf_counter()
            elif isinstance(answer, (Failed, Diverged)):
                self.reason = answer.reason
            if answer is not None:
                self.hear(answer)
        return messages is not None

    def prints(self, stream: IO[bytes]) -> bool:
        """Take in what it printed; False at its end."""
        printed = os.read(stream.fileno(), 1 << 16)
        self.tail = (self.tail + printed)[-TAIL_BYTES:]
        return bool(printed)


def _listen(
    process: subprocess.Popen[bytes], channel: Channel, heard: _Heard, look: Callable[[], None], deadline: float | None
) -> Ending:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        selector.register(process.stdout, selectors.EVENT_READ)
        gone_at: float | None = None
        look_at = 0.0
        while selector.get_map():
            now = time.perf_counter()
            if deadline is not None and now > deadline:
                return Ending("timeout", "took longer than --timeout allows", _text(heard.tail))
            if heard.done_at is not None and now > heard.done_at + _GRACE_SECONDS:
                break  # it has said all, and hangs on its way out
            if gone_at is None and process.poll() is not None:
                gone_at = now
            if now >= look_at:
                look()
                look_at = max(look_at + LOOK_EVERY_SECONDS, now)
                now = time.perf_counter()
            ready = selector.select(max(look_at - now, 0.0) if gone_at is None else 0)
            # A grandchild may hold the pipe open, or print, for ever; but what the process said has been heard.
            if gone_at is not None and (not ready or now > gone_at + _GRACE_SECONDS):
                break
            for key, _ in ready:
                if not (heard.answers(channel) if key.fileobj is channel else heard.prints(process.stdout)):
                    selector.unregister(key.fileobj)
    if heard.done_at is not None:
        return Ending("done" if heard.reason is None else "died", heard.reason, _text(heard.tail))
    try:
        code = process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        code = None
    return Ending("died", heard.reason or _cause(code), _text(heard.tail))


def _cause(code: int | None) -> str:
    if code is None:
        return "the process hung up without ending"
    if code < 0:
        name = signal_name(code)
        hint = " (often the system's answer to too little memory)" if name == "SIGKILL" else ""
        return f"the process was killed by {name}{hint}"
    return f"the process ended with exit code {code} before it was done"


def _text(tail: bytes) -> str:
    return tail.decode(errors="replace").replace("\0", "")


def _environment(python: Path, threads: int | None) -> dict[str, str]:
    environment = dict(os.environ)
    if str(python) != sys.executable:
        for variable in ("PYTHONPATH", "PYTHONHOME"):  # they speak of this interpreter, not of that one
            environment.pop(variable, None)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    if sys.platform == "darwin":
        environment.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "0")
    return environment
