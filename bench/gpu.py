"""Measure a GPU in one call and write one page about it.

    python bench/gpu.py FOLDER [--limit SECONDS] [--wheels DIR] [--only NAME,...] [--quick]

Runs from a checkout, without installation and without a network: `trainmark doctor`, `tests/gpu`, the five workloads
in every framework and style, CUDA graphs on and off, the CPU next to the GPU, and the measured peaks. The page is
printed and written to FOLDER/README.md, next to the records.

Sections run in order of importance, each with a share of the time that is left. The page names whatever failed or did
not fit, with the last lines of its error. Call it again with the same FOLDER to do only what is missing. Ctrl-C and
SIGTERM end it early, with a page about what is done.

MNIST and CIFAR-10 come from the folder that TRAINMARK_DATA names. Without MNIST it trains on synthetic digits, and the
page says so. If modules are missing, it prints the `pip download` command that fetches them on another machine: copy
the folder of wheels to this one and name it with --wheels.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gpu_page
from gpu_page import Outcome

ROOT = Path(__file__).resolve().parents[1]
NEEDED = {  # module: its distribution on PyPI; not requests, which only downloads need
    "numpy": "numpy",
    "msgspec": "msgspec",
    "click": "click",
    "rich": "rich",
    "psutil": "psutil",
    "pynvml": "nvidia-ml-py",
    "platformdirs": "platformdirs",
}
FRAMEWORKS = {"torch": "torch", "jax": "jax", "keras": "tensorflow"}
WITH_GRAPHS = ("torch",)
"""Backends whose `fast` captures CUDA graphs, unless TRAINMARK_CUDA_GRAPHS=0."""

RESERVED_SECONDS = 15.0  # for the last table and the page
LEAST_SECONDS = 10.0  # with less, a section would only start and stop
GRACE_SECONDS = 10.0  # for an interrupted command to write its record
PROBE_SECONDS = 90.0
ROUNDS = 3

PROBE = """
import dataclasses, json, sys
from trainmark.backends import registry
can = registry.load(sys.argv[1]).capabilities()
print(json.dumps({"styles": can.styles, "devices": [dataclasses.asdict(device) for device in can.devices]}))
"""


@dataclass(frozen=True)
class Ran:
    """A command that ended: what it printed, and what went wrong, which is empty when nothing did."""

    printed: str
    problem: str


@dataclass(frozen=True)
class Side:
    """A backend that sees the device: its styles, the device's precisions and the device's name."""

    backend: str
    styles: tuple[str, ...]
    precisions: tuple[str, ...]
    device: str | None


@dataclass
class Session:
    """The folder, the device, and how to run a command in the time that is left."""

    folder: Path
    device: str
    quick: bool
    scratch: Path
    environment: dict[str, str]
    sides: list[Side] = field(default_factory=list)
    datasets: frozenset[str] = frozenset()
    printed: dict[str, str] = field(default_factory=dict)

    def run(self, *command: str, seconds: float) -> Ran:
        """Run a command; one that takes longer is interrupted, so that it can still write its record."""
        with (self.scratch / "out").open("w+b") as out, (self.scratch / "err").open("w+b") as err:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=ROOT,
                env=self.environment,
                start_new_session=True,  # Ctrl-C reaches this process alone
            )
            cut = False
            try:
                process.wait(max(seconds, 1.0))
            except subprocess.TimeoutExpired:
                cut = True
            finally:
                end(process)
            printed, errors = (_text(file) for file in (out, err))
        shown = shlex.join(command[1:]).removeprefix("-m ").replace(str(self.folder), "FOLDER")
        if cut:
            return Ran(printed, f"`{shown}` was stopped after {seconds:.0f} s")
        if process.returncode:
            return Ran(printed, f"`{shown}` ended with {process.returncode}:\n{gpu_page.last_lines(errors or printed)}")
        return Ran(printed, "")

    def trainmark(self, *arguments: str, seconds: float) -> Ran:
        """Run a trainmark command."""
        return self.run(sys.executable, "-m", "trainmark", *arguments, seconds=seconds)

    def train(self, out: str, course: Course, *options: str, seconds: float, repeats: int = 1) -> list[str]:
        """Train what is not yet in a folder of records; returns what went wrong."""
        here = [name for name in course.workloads if not name.startswith("cifar10") or "cifar10" in self.datasets]
        problems = [
            f"{name} was left out: no CIFAR-10 in TRAINMARK_DATA" for name in course.workloads if name not in here
        ]
        if here:
            ran = self.trainmark(
                "run", *here, *(("--steps", "20") if self.quick else course.length), *options,
                *(() if "mnist" in self.datasets else ("--dataset", "synthetic-digits")),
                "--repeats", str(1 if self.quick else repeats), "--budget", "0", "--resume",
                "--out", str(self.folder / out), seconds=seconds,
            )  # fmt: skip
            problems += [ran.problem] if ran.problem else []
        return problems

    def compare(self, out: str, *options: str) -> str:
        """The table of a folder of records in Markdown, empty without records."""
        if not any((self.folder / out).glob("*.json")):
            return ""
        ran = self.trainmark("compare", str(self.folder / out), *options, "--format", "markdown", seconds=60)
        if ran.problem and options:  # the baseline may be what was cut short
            return self.compare(out)
        return ran.printed or ran.problem

    def backends(self, style: str, precision: str = "fp32") -> str:
        """Those with a style and a precision, as trainmark's options take them."""
        return ",".join(s.backend for s in self.sides if style in s.styles and precision in s.precisions)


@dataclass(frozen=True)
class Course:
    """Workloads that train for the same length."""

    workloads: tuple[str, ...]
    length: tuple[str, ...]


MNIST = Course(("mnist-mlp512", "mnist-mlp128", "mnist-cnn"), ("--epochs", "3"))
OTHERS = (Course(("mnist-mlp32",), ("--steps", "200")), Course(("cifar10-cnn",), ("--steps", "100")))


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Args:
        weight: its share of the time, in seconds of a whole run.
        measure: does the work in the given seconds and returns what went wrong.
        show: its text, also of work that was cut short.
    """

    title: str
    weight: float
    measure: Callable[[Session, float], list[str]]
    show: Callable[[Session], str]


def doctor(session: Session, seconds: float) -> list[str]:
    ran = session.trainmark("doctor", seconds=seconds)
    session.printed["doctor"] = gpu_page.as_code(ran.printed)
    return [ran.problem] if ran.problem else []


def gpu_tests(session: Session, seconds: float) -> list[str]:
    if not _importable("pytest", session):
        return ["left out: this Python has no pytest; bring it with --wheels"]
    # The project's own options ask for plug-ins that such a machine need not have.
    ran = session.run(
        sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(ROOT), "-p", "no:cacheprovider",
        "-q", "-ra", "--disable-warnings", "tests/gpu", seconds=seconds,
    )  # fmt: skip
    session.printed["tests"] = gpu_page.as_code(gpu_page.last_lines(ran.printed, 20))
    return [ran.problem] if ran.problem else []


def training(out: str, courses: Sequence[Course], repeats: int = 1) -> Callable[[Session, float], list[str]]:
    """Every framework and style: first, in one interleaved command, the styles that all have, then the others."""

    def measure(session: Session, seconds: float) -> list[str]:
        styles = list(dict.fromkeys(style for side in session.sides for style in side.styles))
        common = [style for style in styles if all(style in side.styles for side in session.sides)]
        asked = [common, *([style] for style in styles if style not in common)]
        problems = []
        for share, (course, chosen) in shares(
            seconds, [(course, each) for course in courses for each in asked if each]
        ):
            problems += session.train(
                out, course, "--backend", session.backends(chosen[0]), "--style", ",".join(chosen),
                "--device", session.device, seconds=share, repeats=repeats,
            )  # fmt: skip
        return list(dict.fromkeys(problems))

    return measure


def graphs(session: Session, seconds: float) -> list[str]:
    backends = [side.backend for side in session.sides if side.backend in WITH_GRAPHS]
    if not backends or not session.device.startswith("cuda"):
        return [f"left out: needs a CUDA device and {' or '.join(WITH_GRAPHS)}"]
    off = session.folder / "python-without-cuda-graphs"
    path = shlex.quote(session.environment.get("PYTHONPATH", ""))  # another interpreter is not given it by itself
    off.write_text(f'#!/bin/sh\nPYTHONPATH={path} TRAINMARK_CUDA_GRAPHS=0 exec {shlex.quote(sys.executable)} "$@"\n')
    off.chmod(0o755)
    return session.train(
        "graphs", Course(("mnist-mlp512", "mnist-mlp128"), MNIST.length), "--style", "fast",
        "--device", session.device, "--python", f"nographs={off}",
        "--backend", ",".join(f"{name},{name}@nographs" for name in backends),
        seconds=seconds, repeats=ROUNDS,
    )  # fmt: skip


def cpu(session: Session, seconds: float) -> list[str]:
    if session.device == "cpu":
        return ["left out: the measured device is the CPU"]
    return session.train(
        "cpu", Course(("mnist-mlp512", "mnist-cnn"), MNIST.length), "--backend", session.backends("fast"),
        "--style", "fast", "--device", f"{session.device},cpu", seconds=seconds,
    )  # fmt: skip


def precisions(session: Session, seconds: float) -> list[str]:
    asked = [(name, backends) for name in ("fp32", "tf32", "bf16") if (backends := session.backends("fast", name))]
    problems = []
    for share, (precision, backends) in shares(seconds, asked):
        problems += session.train(
            "peak", Course(("mnist-mlp512",), MNIST.length), "--backend", backends, "--style", "fast",
            "--device", session.device, "--precision", precision, seconds=share,
        )  # fmt: skip
    return problems


def peak(session: Session) -> str:
    folders = [str(session.folder / name) for name in RECORDS if any((session.folder / name).glob("*.json"))]
    if not folders:
        return ""
    ran = session.trainmark("compare", *folders, "--format", "json", seconds=60)
    return gpu_page.peak_tables(session.folder, json.loads(ran.printed)["groups"]) if ran.printed else ran.problem


def more_rounds(session: Session, seconds: float) -> list[str]:
    problems = []
    for share, (name, courses) in shares(seconds, [("mnist", (MNIST,)), ("others", OTHERS)]):
        problems += training(name, courses, ROUNDS)(session, share)
    return [f"not every training has {ROUNDS} rounds: the tables show how many it has"] if problems else []


RECORDS = ("mnist", "others", "graphs", "cpu", "peak")
"""Folders of records."""

SECTIONS = {
    "doctor": Section("Doctor", 60, doctor, lambda session: session.printed.get("doctor", "")),
    "tests": Section("tests/gpu", 80, gpu_tests, lambda session: session.printed.get("tests", "")),
    "mnist": Section("MNIST", 150, training("mnist", (MNIST,)), lambda session: session.compare("mnist")),
    "others": Section("Other workloads", 100, training("others", OTHERS), lambda session: session.compare("others")),
    "graphs": Section(
        "CUDA graphs on and off",
        60,
        graphs,
        lambda session: session.compare("graphs", "--by", "python", "--baseline", "python=nographs"),
    ),
    "cpu": Section(
        "The CPU",
        60,
        cpu,
        lambda session: session.compare("cpu", "--by", "device", "--baseline", "device=cpu"),
    ),
    "peak": Section("Peak", 60, precisions, peak),
    "rounds": Section("More rounds", 10, more_rounds, lambda _: f"Up to {ROUNDS} rounds of every training above."),
}


def shares(seconds: float, calls: Sequence[Any]) -> Iterator[tuple[float, Any]]:
    """Each call with its share of the time: what one leaves over goes to the others."""
    deadline = time.monotonic() + seconds
    for place, call in enumerate(calls):
        yield (deadline - time.monotonic()) / (len(calls) - place), call


def end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a command and whatever it started, then kill what is left."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_unknown() -> None:
    """End the children whose ids a signal lost, because it arrived between their start and the assignment."""
    import psutil  # it may come with --wheels

    children = psutil.Process().children()
    for child in children:
        child.terminate()
    for child in psutil.wait_procs(children, GRACE_SECONDS)[1]:
        child.kill()


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="replace"))


def _importable(module: str, session: Session) -> bool:
    code = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"
    return not session.run(sys.executable, "-c", code, module, seconds=30).problem


def probe(session: Session, backends: Sequence[str]) -> list[str]:
    """Fill in the session's sides and datasets; returns why a backend is left out."""

    def ask(name: str) -> Side | str:
        command = [sys.executable, "-c", PROBE, name]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PROBE_SECONDS, env=session.environment, check=True
            )
        except subprocess.TimeoutExpired:
            return f"{name}: no answer in {PROBE_SECONDS:.0f} s"
        except subprocess.CalledProcessError as error:
            return f"{name}:\n{gpu_page.last_lines(error.stderr)}"
        can = json.loads(done.stdout.splitlines()[-1])
        for device in can["devices"]:
            if device["id"] == session.device:
                return Side(name, tuple(can["styles"]), tuple(device["precisions"]), device["name"])
        return f"{name}: sees {', '.join(device['id'] for device in can['devices'])}, not {session.device}"

    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(ask, backends))
    session.sides = [answer for answer in answers if isinstance(answer, Side)]
    listed = session.trainmark("data", "list", "--json", seconds=60)
    session.datasets = frozenset(each["name"] for each in json.loads(listed.printed or "[]") if each["directory"])
    return [answer for answer in answers if isinstance(answer, str)]


def measure(session: Session, names: Sequence[str], deadline: float, page: gpu_page.Page) -> None:
    """Run the sections, and write the page after each, so that even SIGKILL leaves one."""
    waiting = [name for name in names if not page.is_done(name)]
    for place, name in enumerate(waiting):
        section = SECTIONS[name]
        left = deadline - time.monotonic()
        share = left * section.weight / sum(SECTIONS[later].weight for later in waiting[place:])
        start, stopped = time.monotonic(), False
        if share < LEAST_SECONDS:
            problems = [f"did not fit into the limit: {max(share, 0):.0f} s left for it"]
        else:
            try:
                print(f"{section.title}: up to {share:.0f} s", file=sys.stderr, flush=True)
                problems = section.measure(session, share)
            except KeyboardInterrupt:
                problems, stopped = ["interrupted"], True
            except Exception as error:  # noqa: BLE001  the other sections go on, and the page names it
                problems = [f"{type(error).__name__}: {error}"]
        again = ("mnist", "others", name) if name == "rounds" else (name,)
        for shown in again:
            kept = page.outcomes.get(shown)
            mine = problems if shown == name else kept.problems if kept else []
            seconds = time.monotonic() - start if shown == name else kept.seconds if kept else 0.0
            page.keep(shown, Outcome(SECTIONS[shown].title, seconds, mine, SECTIONS[shown].show(session)))
        page.write()
        if stopped:
            for later in waiting[place + 1 :]:
                page.keep(later, Outcome(SECTIONS[later].title, 0.0, ["interrupted before it began"], ""))
            page.write()
            return


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--backend", default=",".join(n for n, module in FRAMEWORKS.items() if find_spec(module)))
    parser.add_argument(
        "--limit", type=float, default=540, metavar="SECONDS", help="for everything; default %(default)s"
    )
    parser.add_argument("--only", default=",".join(SECTIONS), metavar="NAME,...", help="default: %(default)s")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="wheels of the modules that this Python lacks")
    parser.add_argument("--commit", help="what to print as the commit where git can't tell")
    parser.add_argument("--quick", action="store_true", help="20 steps of everything: shows that it works")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - set(SECTIONS)
    if unknown:
        parser.error(f"--only has no section {', '.join(sorted(unknown))}: expected some of {', '.join(SECTIONS)}")
    return options


def packages(wheels: Path | None, scratch: Path) -> list[str]:
    """The folders to put on PYTHONPATH: the source and the unpacked wheels."""
    unpacked = scratch / "packages"
    for wheel in sorted(wheels.glob("*.whl")) if wheels else []:
        zipfile.ZipFile(wheel).extractall(unpacked)
    return [str(ROOT / "src"), str(unpacked)]


def require_modules() -> None:
    """Say which modules are missing and how to bring them, then exit."""
    missing = [name for module, name in NEEDED.items() if find_spec(module) is None]
    if not missing:
        return
    if find_spec("pytest") is None:
        missing.append("pytest")
    version = ".".join(platform.python_version_tuple()[:2])
    sys.exit(
        f"bench/gpu.py: {sys.executable} lacks {', '.join(missing)}.\n"
        "On a machine with a network:\n"
        f"  pip download --only-binary :all: --python-version {version} --platform manylinux2014_{platform.machine()} "
        f"-d wheels {' '.join(missing)}\n"
        "Copy the folder here, then:\n"
        "  python bench/gpu.py --wheels wheels"
    )


def main() -> int:
    options = parse()
    start = time.monotonic()
    # Ctrl-C and SIGTERM end the section at hand, and the page is written.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="trainmark-gpu-") as scratch:
        folders = packages(options.wheels, Path(scratch))
        sys.path[:0] = folders
        require_modules()
        before = os.environ.get("PYTHONPATH")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, *([before] if before else [])])}
        folder = options.folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        session = Session(folder, options.device, options.quick, Path(scratch), environment)
        page = gpu_page.Page(folder)
        try:
            absent = probe(session, options.backend.split(",") if options.backend else [])
            page.head = gpu_page.head(
                options.device, options.limit, options.commit, options.quick,
                [(side.backend, side.device) for side in session.sides], absent, session.datasets,
            )  # fmt: skip
            names = [name for name in SECTIONS if name in options.only.split(",")]
            measure(session, names if session.sides else ["doctor"], start + options.limit - RESERVED_SECONDS, page)
        except KeyboardInterrupt:
            page.head = [*page.head, "**Interrupted**"]
        finally:
            end_unknown()
        text = page.write()
    print(text)
    return 0 if session.sides and page.complete else 1


if __name__ == "__main__":
    sys.exit(main())
