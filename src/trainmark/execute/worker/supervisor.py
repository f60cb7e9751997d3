"""The parent of a measured command, which ends all of its processes however trainmark ends.

It stands between the worker and the command, in a separate session and without trainmark's name
in its command line, so that whatever ends trainmark and its worker together, such as ``pkill -f
trainmark``, leaves it running. When the connection to the worker closes, it ends every process of
the command. On Linux, orphans of the command become its children, and the command ends with it.

It also confines the command (:mod:`trainmark.landlock`), since the restriction is inherited.

The worker starts it by :class:`Supervisor`. They exchange one JSON object a line: the request, then
``started`` or ``failed``, ``ended`` and ``swept``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # it is started as a file, in an interpreter without site-packages
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from trainmark import landlock, processes
from trainmark.execute.protocol.wire import SCRATCH
from trainmark.execute.worker import lifeline

_GRACE_SECONDS = 0.5
"""Seconds in which helper processes may end after their command, before they are ended."""


@dataclass(frozen=True)
class CommandRequest:
    """What is to be started.

    Args:
        argv: the command's words.
        folder: its working folder; None is the current one.
        writable: the only folders below which it can write; None is everywhere.
    """

    argv: Sequence[str]
    folder: str | None
    writable: Sequence[str] | None


class Supervisor:
    """The supervisor process, from the worker's side, as a context manager.

    Args:
        environment: all environment variables of the command.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=dict(environment),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._connection = ours
        self._messages = _messages(ours)

    def __enter__(self) -> Supervisor:
        _RUNNING.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._connection.close()

    def close(self) -> None:
        """End the command, and wait until all of its processes have ended."""
        with contextlib.suppress(OSError):  # it is closed already
            self._connection.shutdown(socket.SHUT_RDWR)
        self._process.wait()
        processes.end_descendants()  # the command's, if the supervisor was ended by something else

    @property
    def pid(self) -> int:
        """Id of the supervisor, whose descendants are the processes of the command."""
        return self._process.pid

    def start(self, request: CommandRequest) -> dict[str, Any]:
        """Start the command, and return the message ``started`` or ``failed``.

        Raises:
            OSError: the supervisor has ended.
        """
        self._connection.sendall(json.dumps(asdict(request)).encode() + b"\n")
        return self.receive()

    def fileno(self) -> int:
        """Return the descriptor on which its next message arrives, for ``selectors``."""
        return self._connection.fileno()

    def receive(self) -> dict[str, Any]:
        """Return its next message, after waiting for it.

        Raises:
            ChildProcessError: the supervisor has ended; its command ends with it.
        """
        message = next(self._messages, None)
        if message is None:
            raise ChildProcessError("the process that watched over the command was ended")
        return message


_RUNNING: list[Supervisor] = []
"""The supervisor of this process's command, once it runs."""


def end_command() -> None:
    """End the command of this process, if there is one, with all of its processes.

    Its supervisor does that. It must not be ended itself, since it ends the rest if this process is
    killed meanwhile.
    """
    for supervisor in _RUNNING:
        supervisor.close()


def serve(connection: socket.socket) -> None:
    """Start the requested command, and end all of its processes at its end or the worker's."""
    requests = _messages(connection)
    request = next(requests, None)
    if request is None:
        return
    become_subreaper = 36
    lifeline.control(become_subreaper, 1)

    def say(**message: Any) -> None:
        with contextlib.suppress(OSError):  # the worker is gone, which the other thread notices
            connection.sendall(json.dumps(message).encode() + b"\n")

    try:
        if request["writable"] is not None:
            landlock.write_only_below(request["writable"])
        started = time.perf_counter()
        process = subprocess.Popen(
            request["argv"],
            stdin=subprocess.DEVNULL,
            cwd=request["folder"],
            start_new_session=True,
            preexec_fn=_end_with_parent,  # it is safe, since this process has one thread so far
        )
    except OSError as error:
        say(event="failed", reason=str(error))
        return
    say(event="started", pid=process.pid, at=started)

    def watch_worker() -> None:
        for _ in requests:
            pass
        _end_all(process.pid)
        os._exit(0)

    threading.Thread(target=watch_worker, daemon=True).start()
    _, status, usage = os.wait4(process.pid, 0)
    say(
        event="ended",
        at=time.perf_counter(),
        code=os.waitstatus_to_exitcode(status),
        user_seconds=usage.ru_utime,
        system_seconds=usage.ru_stime,
        peak=usage.ru_maxrss,
        own_peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    )
    say(event="swept", left=_end_all(process.pid, _GRACE_SECONDS))


def _end_all(command: int, grace: float = 0.0) -> int:
    """End every process of the command, and return the number of those that were left."""
    left = processes.end_descendants(grace)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command, signal.SIGKILL)  # where the system does not show descendants
    folder = os.environ.get(SCRATCH)
    return left + (processes.end_marked(f"{SCRATCH}={folder}", os.getppid()) if folder else 0)


def _end_with_parent() -> None:
    """Let the kernel end this process with its parent, before it becomes the command."""
    set_parent_death_signal = 1
    lifeline.control(set_parent_death_signal, signal.SIGKILL)


def _messages(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """Yield what arrives, until the other end closes."""
    with contextlib.suppress(OSError), connection.makefile("rb") as lines:
        for line in lines:
            yield json.loads(line)


def _forget_command_line() -> None:
    """Empty this process's command line in the system's list, which has trainmark's path.

    Elsewhere than on Linux it stays.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
        first = int(fields[45])  # field 48 of proc(5)
        last = int(fields[46])
        name = b"command-supervisor"[: last - first - 1]
        ctypes.memset(first, 0, last - first)
        ctypes.memmove(first, name, len(name))


if __name__ == "__main__":
    _forget_command_line()
    serve(socket.socket(fileno=int(sys.argv[1])))
