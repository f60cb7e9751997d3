"""Kill trainmark at random moments, again and again, and count what is lost.

    python -m bench.kill_storm --kills 450
    python -m bench.kill_storm --kills 50 --backend torch
    python -m bench.kill_storm --kills 100 --backend command

A matrix is a command that leaves a record of every side and round. It is started, killed some time
after it has finished one more run, started again with ``--resume``, killed again ..., until it is
done. Most kills are SIGKILL to trainmark itself; others are SIGKILL to a process it started, to
trainmark and its workers together, SIGTERM, SIGHUP, SIGQUIT and Ctrl-C. Half of them happen in a
terminal, where another thread draws. After each kill it checks whether a finished record is gone or
changed, whether a file is half written, and whether a process is left; at the end of a matrix,
whether each of its runs has one record that is ok, and the folder has nothing else. At the end of
all, the next command must remove the temporary folders of killed ones.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fcntl
import os
import pty
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from trainmark.cli.main import INTERRUPTED
from trainmark.errors import RecordError
from trainmark.record.store import read
from trainmark.scratch import PREFIX, scratch_folder, shared_top

CHILD = "SIGKILL to its child"
BOTH = "SIGKILL to both"
"""To trainmark and to its workers, at the same time."""
ENDING = {
    "SIGTERM": signal.SIGTERM,
    "Ctrl-C": signal.SIGINT,
    "SIGHUP": signal.SIGHUP,
    "SIGQUIT": signal.SIGQUIT,
}
"""Signals after which trainmark ends by itself."""
KINDS = {"SIGKILL to trainmark": 8, CHILD: 4, BOTH: 4, **dict.fromkeys(ENDING, 2)}
"""How often each kind of kill is drawn."""
MARK = "TRAINMARK_STORM"
PATIENCE_SECONDS = 20.0
OLD_SECONDS = 62.0
"""Seconds after which the folder of a killed command is old enough to be removed."""
SIDES = {
    "fake": (2, ["--style", "fast", "--device", "cpu,cuda:0"]),
    "torch": (2, ["--style", "idiomatic,fast", "--device", "cpu"]),
    "numpy": (1, ["--style", "idiomatic", "--device", "cpu"]),
    "command": (2, ["--vary", "seconds=0.2,0.4"]),
}
"""A matrix: the number of its sides, and the options that make them."""


@dataclass
class Tally:
    """The results so far."""

    kills: collections.Counter[str] = field(default_factory=collections.Counter)
    matrices: int = 0
    least_finished: int | None = None
    kept: int = 0
    faults: list[str] = field(default_factory=list)

    def killed(self, kind: str, finished: int) -> None:
        """One more, with this many finished records in the folder."""
        self.kills[kind] += 1
        self.kept += finished
        self.least_finished = (
            finished if self.least_finished is None else min(self.least_finished, finished)
        )

    def lines(self) -> Iterator[str]:
        """Return the results as lines of text."""
        kinds = ", ".join(f"{count} × {kind}" for kind, count in self.kills.most_common())
        yield f"{self.kills.total()} kills in {self.matrices} matrices: {kinds}"
        yield (
            f"finished records in the folder at a kill: {self.least_finished} at least, "
            f"{self.kept:,} in all"
        )
        yield f"faults: {len(self.faults)}"
        yield from (f"  {fault}" for fault in self.faults)


class Matrix:
    """One command into one folder, until it is complete."""

    def __init__(self, backend: str, rounds: int, chance: random.Random, tally: Tally) -> None:
        self._chance = chance
        self._tally = tally
        self._folder = Path(tempfile.mkdtemp(prefix="kill-storm-"))
        self._out = self._folder / "out"
        self._rounds = rounds
        (self._sides, options) = SIDES[backend]
        self._has_weights = backend != "command"
        verb = ["run", "mnist-mlp128", "--backend", backend] if self._has_weights else ["measure"]
        of_training = ["--dataset", "synthetic-digits", "--steps", "120", "--save-weights"]
        # Each run of the command leaves a process in another session behind.
        words = ["--", "sh", "-c", "setsid sleep 600 & sleep {seconds}"]
        self._command = [
            *[sys.executable, "-m", "trainmark", *verb, *options],
            *(of_training if self._has_weights else []),
            *["--repeats", str(rounds), "--budget", "0", "--out", str(self._out), "--resume"],
            *([] if self._has_weights else words),
        ]

    def storm(self, kills: int) -> None:
        """Kill the command up to this many times, then let it end, and look."""
        for _ in range(kills):
            if not self._kill_once():
                break
        process, _ = self._start()
        _, err = process.communicate(timeout=1800)
        if process.returncode != 0:
            self._fault(f"--resume ended with {process.returncode}: {err[-500:]}")
        self._look_complete()
        self._tally.matrices += 1
        if not self._tally.faults:
            for path in self._out.iterdir():
                path.unlink()
            self._out.rmdir()
            self._folder.rmdir()

    def _start(self, in_terminal: bool = False) -> tuple[subprocess.Popen[str], str]:
        token = secrets.token_hex(8)
        fake = str(Path(__file__).parents[1] / "tests" / "plugins" / "fake")
        path = os.pathsep.join(filter(None, (fake, os.environ.get("PYTHONPATH"))))
        environment = {
            **os.environ,
            MARK: token,
            "PYTHONPATH": path,
            "TRAINMARK_FAKE": '{"step_seconds": 0.01}',
        }
        if not in_terminal:
            return subprocess.Popen(
                self._command,
                env=environment,
                text=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            ), token
        screen, end = pty.openpty()
        process = subprocess.Popen(
            self._command, env=environment, text=True, stdout=subprocess.DEVNULL, stderr=end
        )
        os.close(end)
        threading.Thread(target=_drain, args=(screen,), daemon=True).start()
        return process, token

    def _kill_once(self) -> bool:
        """Whether the command could be killed, and was not done before."""
        finished_before = len(self._finished())
        process, token = self._start(in_terminal=self._chance.random() < 0.5)
        family: dict[int, psutil.Process] = {}
        started = time.monotonic()
        until: float | None = None
        while process.poll() is None and (until is None or time.monotonic() < until):
            family.update((each.pid, each) for each in _children(process.pid))
            if until is None and len(self._finished()) > finished_before:
                until = time.monotonic() + self._chance.uniform(0, (time.monotonic() - started) / 2)
            time.sleep(0.005)
        if process.poll() is not None:
            process.communicate()
            return False
        kind = self._chance.choices(list(KINDS), list(KINDS.values()))[0]
        before = self._finished()
        self._send(kind, process)
        try:
            # If a child was killed, the remaining runs go on.
            process.communicate(timeout=1800 if kind == CHILD else PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._fault(f"{kind}: trainmark did not end")
            process.kill()
            process.communicate()
        self._tally.killed(kind, len(before))
        if kind in ENDING and process.returncode != INTERRUPTED and not self._is_complete():
            self._fault(
                f"{kind}: exit code {process.returncode} with {len(self._finished())} runs done"
            )
        self._look_alone(kind, family, token)
        self._look_kept(kind, before)
        return True

    def _send(self, kind: str, process: subprocess.Popen[str]) -> None:
        if kind == CHILD:
            children = _children(process.pid)
            if children:
                self._chance.choice(children).kill()
        elif kind == BOTH:
            workers = psutil.Process(process.pid).children()
            for each in (psutil.Process(process.pid), *workers):
                each.kill()
        else:
            process.send_signal(ENDING.get(kind, signal.SIGKILL))

    def _look_alone(self, kind: str, family: dict[int, psutil.Process], token: str) -> None:
        """Check that all processes are gone: those whose ids were seen, and all others that
        inherited the mark."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        left: list[int] = []
        while time.monotonic() < deadline:
            left = [pid for pid, each in family.items() if _alive(each)] + _marked(token)
            if not left:
                return
            time.sleep(0.05)
        self._fault(f"{kind}: processes left behind: {sorted(set(left))}")

    def _look_kept(self, kind: str, before: dict[Path, bytes]) -> None:
        for path, content in before.items():
            if not path.exists() or path.read_bytes() != content:
                self._fault(f"{kind}: the finished record {path} is lost or changed")
        for path in self._out.glob("*.json"):
            try:
                read(path)
            except RecordError as error:
                self._fault(f"{kind}: {path} is half written: {error}")

    def _is_complete(self) -> bool:
        """Whether all runs are done; then it was ending by itself."""
        return len(self._finished()) == self._rounds * self._sides

    def _look_complete(self) -> None:
        records = [read(path) for path in self._out.glob("*.json")]
        done = collections.Counter(
            (record.round, record.backend.style, record.device.id)
            for record in records
            if record.outcome.status == "ok"
        )
        if len(done) != self._rounds * self._sides:
            self._fault(f"incomplete: {sorted(done)}")
        if twice := [key for key, count in done.items() if count > 1]:
            self._fault(f"done twice: {twice}")
        for record in records:
            if (
                self._has_weights
                and record.outcome.status == "ok"
                and not (self._out / f"{record.id}.safetensors").exists()
            ):
                self._fault(f"{record.id} has lost its weights")
        known = (".json", ".safetensors")
        if strange := [path.name for path in self._out.iterdir() if path.suffix not in known]:
            self._fault(f"left in the folder: {strange}")

    def _finished(self) -> dict[Path, bytes]:
        """Return the records of runs that are ok, with their content."""
        found = (
            {path: path.read_bytes() for path in self._out.glob("*.json")}
            if self._out.is_dir()
            else {}
        )
        return {
            path: content
            for path, content in found.items()
            if b'"status":"ok"' in content.replace(b": ", b":")
        }

    def _fault(self, text: str) -> None:
        self._tally.faults.append(f"{self._folder}: {text}")


def _drain(screen: int) -> None:
    with contextlib.suppress(OSError):  # the other end is closed
        while os.read(screen, 1 << 16):
            pass
    os.close(screen)


def _children(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _marked(token: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:  # gone, or someone else's
            continue
    return found


def storm(backend: str, kills: int, *, rounds: int = 4, most_each: int = 6, seed: int = 1) -> Tally:
    """Kill ``kills`` times; each matrix at most ``most_each`` times."""
    # A shell's background job ignores some, and so would ours.
    for ending in ENDING.values():
        signal.signal(ending, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chance = random.Random(seed)
    tally = Tally()
    started = time.monotonic()
    while tally.kills.total() < kills:
        before = tally.kills.total()
        Matrix(backend, rounds, chance, tally).storm(min(most_each, kills - before))
        done = tally.kills.total()
        spent = time.monotonic() - started
        left = spent / max(done, 1) * (kills - done)
        print(
            f"{done}/{kills} kills, {len(tally.faults)} faults, {spent:.0f} s, {left:.0f} s left",
            file=sys.stderr,
        )
    return tally


def _look_swept(tally: Tally) -> None:
    """Check that the next command removes the folders of killed ones, once they are old enough."""
    time.sleep(OLD_SECONDS)
    with scratch_folder():
        left = [path.name for path in shared_top().glob(f"{PREFIX}*") if _is_free(path)]
    if left:
        tally.faults.append(f"folders left behind: {left}")


def _is_free(folder: Path) -> bool:
    """Whether the owner of a folder has ended: its lock is free."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # removed meanwhile
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", default="fake", choices=SIDES)
    parser.add_argument("--kills", type=int, default=450)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    started = time.monotonic()
    tally = storm(arguments.backend, arguments.kills, rounds=arguments.rounds, seed=arguments.seed)
    _look_swept(tally)
    print(f"{arguments.backend}, seed {arguments.seed}, {time.monotonic() - started:.0f} s")
    print("\n".join(tally.lines()))
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
