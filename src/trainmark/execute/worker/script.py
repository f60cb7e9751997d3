"""The measured process of a user's command.

It starts the command, times it, reads its reports, and ends what it leaves behind.

It runs between trainmark and the command so that no process of the command, daemons included,
outlives either: on Linux orphans become this process's children. Elsewhere, processes that leave
the process group are not followed.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from trainmark.execute.protocol.answers import (
    CommandExited,
    CommandStarted,
    Diverged,
    Failed,
    Finished,
    Ready,
    Waiting,
)
from trainmark.execute.protocol.wire import SCRATCH, Send, signal_name
from trainmark.execute.protocol.worker_commands import RunScript, Stop
from trainmark.execute.worker import lifeline
from trainmark.execute.worker.reports import Reports, ToBeEnded
from trainmark.execute.worker.slices import Turns
from trainmark.execute.worker.timing import Clock
from trainmark.execute.worker.working_copy import link_neighbours, linked
from trainmark.hook import TURNS, VARIABLE
from trainmark.inject import best_threads
from trainmark.inject.changes import ORIGINAL
from trainmark.inject.changes import VARIABLE as CHANGES

_MOST_WORDS = 500
"""Most characters of the reason why a command can't be started."""
_GRACE_SECONDS = 0.5
"""Seconds in which helper processes may end after their command, before they are ended."""


def run_script(request: RunScript, send: Send, clock: Clock, turns: Turns) -> None:
    """Run the command of ``request``, and pass on its reports.

    Args:
        turns: the parent's messages.
    """
    become_subreaper = 36
    lifeline.control(become_subreaper, 1)  # orphans become children of this process, not of init
    pipe, reports_pipe = _pipe("reports")
    environment = {**os.environ, **request.environment, VARIABLE: str(pipe)}
    stopped = _Stopped()
    if CHANGES in environment:
        environment |= {"TMPDIR": str(_folder()), ORIGINAL: str(request.scratch)}
    if request.inject:
        environment |= _injection(environment, request.most_steps)
    if request.in_turns:
        place, turns_pipe = _pipe("turns")
        environment[TURNS] = str(place)
        threading.Thread(target=_pass_on, args=(turns, turns_pipe, stopped), daemon=True).start()
    reports = Reports(clock() - request.origin)
    try:
        folder = request.scratch and _copied(Path(request.scratch), request.copy)
        send(Ready())
        start = clock()
        process = subprocess.Popen(
            request.argv, stdin=subprocess.DEVNULL, env=environment, cwd=folder
        )
    except OSError as error:
        send(Failed(f"the command can't be started: {str(error)[:_MOST_WORDS]}"))
        return
    send(CommandStarted(process.pid, start - request.origin))
    ended = _Waiter(process.pid, clock)
    with selectors.DefaultSelector() as selector:
        selector.register(reports_pipe, selectors.EVENT_READ)
        selector.register(ended.bell, selectors.EVENT_READ)
        while not ended.rang:
            selector.select()
            _send_reports(reports, _arrived(reports_pipe), request.origin, clock, send, stopped)
    process.returncode = ended.code
    # This comes first, since a process that keeps writing would block the next lines.
    left = end_descendants(_GRACE_SECONDS)
    while arrived := _arrived(reports_pipe):
        _send_reports(reports, arrived, request.origin, clock, send, stopped)
    peak = ended.usage.ru_maxrss
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bytes_of_unit = 1 if sys.platform == "darwin" else 1024
    send(
        CommandExited(
            code=ended.code,
            seconds=ended.at - start - reports.paused_seconds,
            user_seconds=ended.usage.ru_utime,
            system_seconds=ended.usage.ru_stime,
            # Linux also counts this process's memory before exec, so a lower peak is unknown.
            host_peak_bytes=peak * bytes_of_unit if peak > own_peak else None,
            left=left,
            left_out=reports.left_out,
            odd=reports.odd,
            packages=reports.packages,
            language=reports.language,
            attached=(_folder() / "attached").exists() if request.inject else None,
        )
    )
    if ended.code != 0 and not stopped.are_ended:
        send(Failed(_reason(ended.code)))
    elif reports.not_finite is not None:
        send(Diverged(reports.not_finite, None, reports.last_finite))
    else:
        send(Finished())


def _pipe(name: str) -> tuple[Path, int]:
    """Create a named pipe, open for reading and writing, so that opening it never blocks."""
    place = _folder() / name
    os.mkfifo(place)
    return place, os.open(place, os.O_RDWR | os.O_NONBLOCK)


def _folder() -> Path:
    """Return the folder for files of this process and the command."""
    return Path(os.environ[SCRATCH])


def _injection(environment: Mapping[str, str], most_steps: int | None) -> dict[str, str]:
    """Return the variables that start the observer in every Python interpreter of the command."""
    site = Path(__file__).parents[2] / "inject" / "site"
    path = os.pathsep.join(filter(None, (str(site), environment.get("PYTHONPATH"))))
    return {
        "PYTHONPATH": path,
        "TRAINMARK_OBSERVER": str(_folder()),
        "TRAINMARK_STEPS": str(most_steps or 0),
        "TRAINMARK_PROCESS": "",  # trainmark itself may be observed
    }


def _copied(folder: Path, how: str) -> Path:
    """Copy the working folder to where it is removed at the end; returns the copy."""
    copy = _folder() / "copy" / folder.name  # a separate folder, since its name may be a pipe's
    copy.parent.mkdir()
    if how == "linked":  # otherwise the command could write through links
        link_neighbours(folder, copy)
    return linked(folder, copy, whole=how == "whole")


def _pass_on(turns: Turns, turns_pipe: int, stopped: _Stopped) -> None:
    """Resume the command when it is its turn."""
    while True:
        turn = turns.get()
        if turn["event"] == Stop.__name__:
            line = "-1 0"
        else:
            if turn["threads"]:  # before the command continues, since it then reads the file
                (_folder() / best_threads.FILE).write_text(" ".join(map(str, turn["threads"])))
            line = f"{math.inf if turn['seconds'] is None else turn['seconds']} {turn['untimed']}"
        os.write(turns_pipe, f"{line}\n".encode())
        stopped.go_on()


class _Stopped:
    """The processes of a paused command, including its data loaders.

    They are found while the command is paused, so that the search doesn't cost time of its slice.

    Attributes:
        are_ended: whether they were ended since the training has all its slices or steps.
    """

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self.are_ended = False

    def stop_all(self) -> None:
        """Stop every process of the command, and those they start meanwhile."""
        while new := set(_descendants(os.getpid())) - self._pids:
            self._pids |= new
            _signal(new, signal.SIGSTOP)

    def end_all(self) -> None:
        """End all at once, so that none sees another one's end.

        Only processes that then remove what the others have left, such as shared memory, remain.
        """
        self.are_ended = True
        self.stop_all()
        _signal((pid for pid in self._pids if not _cleans_up(pid)), signal.SIGKILL)
        self.go_on()

    def go_on(self) -> None:
        """Resume them."""
        pids = self._pids
        self._pids = set()
        _signal(pids, signal.SIGCONT)


def _cleans_up(pid: int) -> bool:
    """Whether a process is a resource tracker of multiprocessing or of joblib."""
    with contextlib.suppress(OSError):
        return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class _Waiter:
    """Waits for a process in a separate thread, so that its end is timed exactly.

    It signals the end through a pipe.
    """

    def __init__(self, pid: int, clock: Clock) -> None:
        self._pid = pid
        self._clock = clock
        self.rang = False
        self.bell, self._rope = os.pipe()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        _, status, self.usage = os.wait4(self._pid, 0)
        self.at = self._clock()
        self.code = os.waitstatus_to_exitcode(status)
        self.rang = True
        os.write(self._rope, b"!")


def _arrived(descriptor: int) -> bytes:
    """Read the pipe; returns nothing if it is empty."""
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, 1 << 16)
    return b""


def _send_reports(
    reports: Reports, arrived: bytes, origin: float, clock: Clock, send: Send, stopped: _Stopped
) -> None:
    """Send the parent what the command has reported; stop the command while it waits its turn."""
    for report in reports.take(arrived, origin, clock()):
        if isinstance(report, ToBeEnded):
            stopped.end_all()
            continue
        if isinstance(report, Waiting):
            stopped.stop_all()  # data loaders would use the other side's time
        # If trainmark is gone, the lifeline will end the command.
        with contextlib.suppress(OSError):
            send(report)


def _reason(code: int) -> str:
    if code > 0:
        return f"the command ended with exit code {code}"
    return f"the command was killed by {signal_name(code)}"


def end_descendants(grace: float = 0.0) -> int:
    """End all descendants of this process, adopted orphans included; returns their number."""
    event = threading.Event()
    waited = 0.0
    left = list(_descendants(os.getpid()))
    while left and waited < grace:
        event.wait(0.05)
        waited += 0.05
        left = list(_descendants(os.getpid()))
    ended: set[int] = set()
    while left:
        ended.update(left)
        _signal(left, signal.SIGKILL)
        _reap()
        left = [pid for pid in _descendants(os.getpid()) if pid not in ended]
    return len(ended)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _descendants(pid: int) -> Iterator[int]:
    """Yield the running descendants of ``pid``; none if the system has no /proc."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            _, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(folder.name))
    waiting = list(children.get(pid, ()))
    while waiting:
        found = waiting.pop()
        yield found
        waiting += children.get(found, ())
