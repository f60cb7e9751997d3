"""The measured process of a user's command.

It lets a supervisor start the command (:mod:`trainmark.execute.worker.supervisor`), and reads its
reports.

It runs between trainmark and the supervisor so that no process of the command, daemons included,
outlives them: on Linux orphans become the supervisor's children, and if that is ended, this
process's. Elsewhere, processes that leave the process group are not followed.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import sys
import threading
from collections.abc import Callable, Mapping
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
from trainmark.execute.protocol.copies import Place, place_of_copy
from trainmark.execute.protocol.wire import SCRATCH, Send, signal_name
from trainmark.execute.protocol.worker_commands import RunScript, Stop
from trainmark.execute.worker import lifeline
from trainmark.execute.worker.confinement import (
    OUTSIDE,
    confined_environment,
    writable_folders,
)
from trainmark.execute.worker.outputs import keep_outputs
from trainmark.execute.worker.reports import Reports, ToBeEnded
from trainmark.execute.worker.slices import Turns
from trainmark.execute.worker.supervisor import CommandRequest, Supervisor
from trainmark.execute.worker.timing import Clock
from trainmark.execute.worker.working_copy import link_neighbours, linked, replace_files
from trainmark.hook import TURNS, VARIABLE
from trainmark.inject import best_threads
from trainmark.processes import descendants, send_signal

_MOST_WORDS = 500
"""Most characters of the reason why a command can't be started."""


def run_script(request: RunScript, send: Send, clock: Clock, turns: Turns) -> None:
    """Run the command of ``request``, and pass on its reports.

    Args:
        turns: the parent's messages.
    """
    become_subreaper = 36
    # What outlives the supervisor becomes a child of this process.
    lifeline.control(become_subreaper, 1)
    reports = Reports(clock() - request.origin)
    try:
        pipe, reports_pipe = _pipe("reports")
        environment = {**os.environ, **request.environment, VARIABLE: str(pipe)}
        folder, environment, writable = _confined(request, environment)
        if request.inject:
            environment |= _injection(environment, request)
        if request.in_turns:
            place, turns_pipe = _pipe("turns")
            environment[TURNS] = str(place)
        with Supervisor(environment) as supervisor:
            processes = _CommandProcesses(supervisor.pid)
            if request.in_turns:
                passing = turns, turns_pipe, processes, reports
                threading.Thread(target=_pass_on, args=passing, daemon=True).start()
            send(Ready())
            started = supervisor.start(CommandRequest(request.argv, folder, writable))
            if started["event"] == "failed":
                raise OSError(started["reason"])
            send(CommandStarted(started["pid"], started["at"] - request.origin))

            def pass_on_reports() -> bool:
                arrived = _arrived(reports_pipe)
                _send_reports(reports, arrived, request.origin, clock, send, processes)
                return bool(arrived)

            _until_ended(supervisor, reports_pipe, pass_on_reports)
            ended = supervisor.receive()
            # This comes first, since a process that keeps writing would block the next lines.
            left = supervisor.receive()["left"]
    except ChildProcessError as error:
        send(Failed(str(error)))
        return
    except OSError as error:
        send(Failed(f"the command can't be started: {str(error)[:_MOST_WORDS]}"))
        return
    while pass_on_reports():
        pass
    if request.outputs and folder and ended["code"] == 0 and not reports.ended_early:
        _keep_outputs(request, folder, request.outputs)
    bytes_of_unit = 1 if sys.platform == "darwin" else 1024
    # Linux also counts the supervisor's memory before exec, so a lower peak is unknown.
    is_known = ended["peak"] > ended["own_peak"]
    send(
        CommandExited(
            code=ended["code"],
            seconds=ended["at"] - started["at"] - reports.paused_seconds,
            user_seconds=ended["user_seconds"],
            system_seconds=ended["system_seconds"],
            host_peak_bytes=ended["peak"] * bytes_of_unit if is_known else None,
            left=left,
            left_out=reports.left_out,
            odd=reports.odd,
            packages=reports.packages,
            language=reports.language,
            attached=(_folder() / "attached").exists() if request.inject else None,
        )
    )
    if ended["code"] != 0 and not processes.are_ended:
        send(Failed(_reason(ended["code"])))
    elif reports.not_finite is not None:
        send(Diverged(reports.not_finite, None, reports.last_finite))
    else:
        send(Finished())


def _confined(
    request: RunScript, environment: dict[str, str]
) -> tuple[str | None, dict[str, str], list[str] | None]:
    """Copy the working folder if this is requested.

    Returns the command's working folder, its environment, and the folders that it may write to;
    None for the last if it may write everywhere.
    """
    if request.scratch is None:
        return None, environment, None
    original = request.scratch
    place = place_of_copy(Path(original), _folder())
    _copied(Path(original), place, confined=request.confined)
    replace_files(place.copy, request.files)
    environment = confined_environment(environment, _folder(), original, place)
    writable = writable_folders(environment, _folder(), original) if request.confined else None
    return str(place.copy), environment, writable


def _keep_outputs(request: RunScript, copy: str, outputs: str) -> None:
    """Keep what a complete run has written; a full disk costs only these files."""
    assert request.scratch is not None
    try:
        keep_outputs(Path(request.scratch), Path(copy), _folder() / OUTSIDE, Path(outputs))
    except OSError as error:
        sys.stderr.write(f"the files of this run could not be kept in {outputs}: {error}\n")


def _until_ended(
    supervisor: Supervisor, reports_pipe: int, pass_on_reports: Callable[[], bool]
) -> None:
    """Pass on what the command reports until it has ended, or the supervisor has."""
    with selectors.DefaultSelector() as selector:
        selector.register(reports_pipe, selectors.EVENT_READ)
        selector.register(supervisor, selectors.EVENT_READ)
        ready: set[object] = set()
        while supervisor not in ready:
            ready = {key.fileobj for key, _ in selector.select()}
            pass_on_reports()


def _pipe(name: str) -> tuple[Path, int]:
    """Create a named pipe, open for reading and writing, so that opening it never blocks."""
    place = _folder() / name
    os.mkfifo(place)
    return place, os.open(place, os.O_RDWR | os.O_NONBLOCK)


def _folder() -> Path:
    """Return the folder for files of this process and the command."""
    return Path(os.environ[SCRATCH])


def _injection(environment: Mapping[str, str], request: RunScript) -> dict[str, str]:
    """Return the variables that start the observer in every Python interpreter of the command."""
    site = Path(__file__).parents[2] / "inject" / "site"
    path = os.pathsep.join(filter(None, (str(site), environment.get("PYTHONPATH"))))
    return {
        "PYTHONPATH": path,
        "TRAINMARK_OBSERVER": str(_folder()),
        "TRAINMARK_STEPS": str(request.most_steps or 0),
        "TRAINMARK_METRIC": request.metric or "",
        "TRAINMARK_PROCESS": "",  # trainmark itself may be observed
        "TRAINMARK_NOTEBOOK": _notebook(request),
    }


def _notebook(request: RunScript) -> str:
    """Return the notebook that a command executes, rather than the one that it writes."""
    found = [word for word in request.argv if word.endswith(".ipynb")]
    folder = Path(request.scratch or ".")
    return next((word for word in found if (folder / word).is_file()), next(iter(found), ""))


def _copied(folder: Path, place: Place, *, confined: bool) -> None:
    """Copy the working folder to where it is removed at the end."""
    place.copy.parent.mkdir(parents=True)
    if confined:  # otherwise the command could write through links
        link_neighbours(folder, place)
    linked(folder, place.copy, whole=not confined)


def _pass_on(turns: Turns, turns_pipe: int, processes: _CommandProcesses, reports: Reports) -> None:
    """Resume the command when it is its turn."""
    while True:
        turn = turns.get()
        if turn["event"] == Stop.__name__:
            line = "-1 0"
        else:
            if turn["threads"]:  # before the command continues, since it then reads the file
                (_folder() / best_threads.FILE).write_text(" ".join(map(str, turn["threads"])))
            line = f"{math.inf if turn['seconds'] is None else turn['seconds']} {turn['untimed']}"
            if turn["steps_a_second"] and reports.counts_steps:
                line += f" {turn['steps_a_second']}"
        os.write(turns_pipe, f"{line}\n".encode())
        processes.go_on()


class _CommandProcesses:
    """The processes of a paused command, including its data loaders.

    They are found while the command is paused, so that the search doesn't cost time of its slice.

    Attributes:
        are_ended: whether they were ended since the training has all its slices or steps.
    """

    def __init__(self, supervisor: int) -> None:
        self._supervisor = supervisor
        self._pids: set[int] = set()
        self.are_ended = False

    def stop_all(self) -> None:
        """Stop every process of the command, and those they start meanwhile."""
        while new := set(descendants(self._supervisor)) - self._pids:
            self._pids |= new
            send_signal(new, signal.SIGSTOP)

    def end_all(self) -> None:
        """End all at once, so that none sees another one's end.

        Only processes that then remove what the others have left, such as shared memory, remain.
        """
        self.are_ended = True
        self.stop_all()
        send_signal((pid for pid in self._pids if not _cleans_up(pid)), signal.SIGKILL)
        self.go_on()

    def go_on(self) -> None:
        """Resume them."""
        pids = self._pids
        self._pids = set()
        send_signal(pids, signal.SIGCONT)


def _cleans_up(pid: int) -> bool:
    """Whether a process is a resource tracker of multiprocessing or of joblib."""
    with contextlib.suppress(OSError):
        return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _arrived(descriptor: int) -> bytes:
    """Read the pipe; returns nothing if it is empty."""
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, 1 << 16)
    return b""


def _send_reports(
    reports: Reports,
    arrived: bytes,
    origin: float,
    clock: Clock,
    send: Send,
    processes: _CommandProcesses,
) -> None:
    """Send the parent what the command has reported; stop the command while it waits its turn."""
    for report in reports.take(arrived, origin, clock()):
        if isinstance(report, ToBeEnded):
            processes.end_all()
            continue
        if isinstance(report, Waiting):
            processes.stop_all()  # data loaders would use the other side's time
        # If trainmark is gone, the lifeline will end the command.
        with contextlib.suppress(OSError):
            send(report)


def _reason(code: int) -> str:
    if code > 0:
        return f"the command ended with exit code {code}"
    return f"the command was killed by {signal_name(code)}"
