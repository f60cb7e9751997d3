"""How long commands with a time limit take, from their start to their end.

    python bench/limits.py [--seconds 30,60,120] [--budget 90] [--tries 3] [--busy 0,2]
                           [--out FILE.jsonl] [--minutes 55]

Each command is started as a person does, and its wall-clock time is read: `explain --seconds N` on
the script of bench/slow_script, on the same script where one change hangs, and where it hangs in
its step 20; `run --budget N` with the default workload. This happens idle, and next to `--busy`
processes that compute without a pause. A limit is kept if the command ends by 1.15 times as many
seconds.

It ends after --minutes; with --out, another call goes on where this one ended. The exit code is 1
if a limit was exceeded.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

MOST = 1.15
"""Largest duration of a command, as a multiple of its limit."""
WORKED = (0, 1)
"""Exit codes of a command that ended by itself; 1 is that there was no time for a result."""
SCRIPT = Path(__file__).resolve().parent / "slow_script" / "train.py"
HANGING = """
import sys, time, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
for step in range(10**9):
    if sys.argv[1] == "step" and step == 20:
        time.sleep(3600)
    if sys.argv[1] == "change" and optimizer.defaults.get("fused") and step > 2:
        time.sleep(3600)
    optimizer.zero_grad()
    x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
EXPLAINED = ("script", "hanging-change", "hanging-step")


@dataclass(frozen=True)
class Try:
    """One command.

    Args:
        what: what it does.
        limit: its limit in seconds.
        busy: number of processes that compute next to it.
        number: which try it is, from 1.
        seconds: its duration; 0 before it has run.
        code: its exit code.
        said: the last line of its result.
    """

    what: str
    limit: float
    busy: int
    number: int
    seconds: float = 0.0
    code: int = 0
    said: str = ""

    @property
    def key(self) -> tuple[str, float, int, int]:
        """What has to be done once."""
        return self.what, self.limit, self.busy, self.number

    @property
    def is_kept(self) -> bool:
        """Whether it ended in time, by itself."""
        return self.seconds <= MOST * self.limit and self.code in WORKED

    def line(self) -> str:
        """Return a line about it."""
        beside = f"next to {self.busy} busy" if self.busy else "idle"
        share = self.seconds / self.limit
        mark = "ok" if self.is_kept else "EXCEEDED"
        return (
            f"{self.what} {self.limit:g} s, {beside}, try {self.number}: {self.seconds:.1f} s, "
            f"{share:.2f} of the limit, exit code {self.code}, {mark}: {self.said}"
        )


def main() -> int:
    """Run what has no line in the file yet; returns the exit code."""
    options = read_options()
    end = time.monotonic() + 60 * options.minutes
    done: list[Try] = []
    if options.out and options.out.exists():
        done = [Try(**json.loads(line)) for line in options.out.read_text().splitlines()]
    known = {each.key for each in done}
    for planned in plan(options):
        if planned.key in known:
            continue
        if time.monotonic() + 2 * planned.limit > end:
            print("the minutes are over; call it again to go on")
            break
        done.append(carried_out(planned, options))
        print(done[-1].line(), flush=True)
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(asdict(done[-1])) + "\n")
    late = [each for each in done if not each.is_kept]
    longest = max((each.seconds / each.limit for each in done), default=0.0)
    print(
        f"{len(done) - len(late)} of {len(done)} ended by {MOST} times their limit; the longest "
        f"took {longest:.2f} times"
    )
    return 1 if late else 0


def read_options() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=_numbers, default=[30.0, 60.0, 120.0])
    parser.add_argument("--budget", type=_numbers, default=[90.0])
    parser.add_argument("--explained", default=",".join(EXPLAINED))
    parser.add_argument("--workload", default="mnist-mlp512")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--busy", type=_numbers, default=[0.0, 2.0])
    parser.add_argument("--minutes", type=float, default=55.0)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _numbers(text: str) -> list[float]:
    return [float(each) for each in text.split(",") if each]


def plan(options: argparse.Namespace) -> Iterator[Try]:
    """Yield all tries; of the scripts that hang, one with the shortest limit is enough."""
    for number in range(1, options.tries + 1):
        for busy in map(int, options.busy):
            for limit in options.budget:
                yield Try("run --budget", limit, busy, number)
            for kind in options.explained.split(","):
                for limit in options.seconds:
                    if kind == "script" or limit == min(options.seconds):
                        yield Try(f"explain {kind} --seconds", limit, busy, number)


def carried_out(planned: Try, options: argparse.Namespace) -> Try:
    """Run a command, next to others if planned."""
    with tempfile.TemporaryDirectory() as folder, computing(planned.busy):
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT.read_text())
        hanging = Path(folder) / "hanging.py"
        hanging.write_text(HANGING)
        words = {
            "explain script --seconds": ["python", str(script), "--slow", "item"],
            "explain hanging-change --seconds": ["python", str(hanging), "change"],
            "explain hanging-step --seconds": ["python", str(hanging), "step"],
        }.get(planned.what)
        command = ["run", options.workload, "--budget", f"{planned.limit:g}", "--out", "results"]
        if words is not None:
            command = ["explain", "--seconds", f"{planned.limit:g}", "--", *words]
        began = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-m", "trainmark", *command],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=20 * planned.limit,
            env={**os.environ, "COLUMNS": "200"},
        )
        seconds = time.perf_counter() - began
    lines = (ended.stdout.strip() or ended.stderr.strip()).splitlines()
    said = lines[0] if ended.stdout.strip() else (lines or [""])[-1]
    return Try(
        planned.what,
        planned.limit,
        planned.busy,
        planned.number,
        round(seconds, 2),
        ended.returncode,
        said[:160],
    )


@contextlib.contextmanager
def computing(number: int) -> Iterator[None]:
    """Keep this many processes computing."""
    loop = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(loop) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    raise SystemExit(main())
