"""How long a measured process takes until it is ready to train, and trainmark's part of that.

    TRAINMARK_DATA=FOLDER python bench/worker_start.py [--backend torch,jax,keras,numpy] [-n 7]
    [--before FOLDER]

FOLDER is the `src` of another commit, as from `git archive COMMIT src | tar -x -C /tmp/before`.

Processes of four kinds take turns: a bare interpreter that imports the framework; one that also
uses it once (an optimiser, a random key, a small model), because frameworks load much of themselves
only then; and a measured process of each commit, up to its message that it is ready
(`setup_seconds` of a record). trainmark's part is the median of the differences from the second
kind. On a machine with other load, the CPU time of the main thread says more than wall-clock time:
without load, the other threads would run at the same time. Finally, it prints where the time of a
measured process goes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

if TYPE_CHECKING:
    from trainmark.backends.base import Style

ROOT = Path(__file__).resolve().parents[1]
_KERAS = (
    "import os; os.environ.update(KERAS_BACKEND='tensorflow', TF_CPP_MIN_LOG_LEVEL='1'); "
    "import keras"
)
IMPORT = {"torch": "import torch", "jax": "import jax", "keras": _KERAS, "numpy": "import numpy"}
FIRST_USE = {
    "torch": "torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)",
    "jax": "jax.random.key(0)",
    "keras": "keras.Sequential([keras.Input((784,)), keras.layers.Dense(10)]).compile('sgd', "
    "'mse')",
    "numpy": "numpy.random.default_rng(0)",
}
PACKAGES = {
    "torch": ["torch"],
    "jax": ["jax"],
    "keras": ["keras", "tensorflow"],
    "numpy": ["numpy"],
}
TELL = "import time; print(time.perf_counter(), time.process_time(), time.thread_time())"


class Taken(NamedTuple):
    """Wall-clock seconds since the start of a process, its CPU time, and the CPU time of its main
    thread alone."""

    passed: float
    processor: float
    main_thread: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", default=",".join(IMPORT))
    parser.add_argument("--workload", default="mnist-mlp512")
    parser.add_argument("--style", default="idiomatic")
    parser.add_argument(
        "-n", type=int, default=7, help="processes of each kind that count, after one that does not"
    )
    parser.add_argument("--before", type=Path, help="the `src` of another commit")
    parser.add_argument(
        "--phases", type=int, default=3, help="processes that read the clock between the phases"
    )
    parser.add_argument("--phases-of", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.phases_of:
        print_phases(Path(asked.phases_of))
        return
    sources = ([("before", asked.before)] if asked.before else []) + [("now", ROOT / "src")]
    print(conditions(asked))
    print(
        "\n| backend | seconds | bare import | and first use |",
        *(f" {name} | ours {name} |" for name, _ in sources),
    )
    print("| --- | --- |" + " ---: |" * (2 + 2 * len(sources)))
    phases = []
    for backend in asked.backend.split(","):
        request = request_to_train(backend, asked.workload, asked.style)
        kinds = {
            "import": partial(bare, IMPORT[backend]),
            "first use": partial(bare, f"{IMPORT[backend]}; {FIRST_USE[backend]}"),
        }
        for name, source in sources:
            kinds[name] = partial(until_ready, request, source)
        # The first of each kind only fills the caches of the file system and of compiled Python.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        rounds = [{name: measure() for name, measure in kinds.items()} for _ in range(asked.n + 1)][
            1:
        ]
        for field in Taken._fields:
            print_row(
                backend,
                field,
                [{name: getattr(each[name], field) for name in each} for each in rounds],
            )
        phases.append((backend, [phases_of(request) for _ in range(asked.phases)]))
    print(
        "\nWhere the time goes now (median seconds that pass; a module's import includes what "
        "it imports first):\n"
    )
    for backend, found in phases:
        medians = {name: statistics.median(each[name] for each in found) for name in found[0]}
        print(f"- {backend}: " + ", ".join(f"{name} {each:.3f}" for name, each in medians.items()))


def conditions(asked: argparse.Namespace) -> str:
    """Return the commit, the hardware and the versions."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    packages = [name for backend in asked.backend.split(",") for name in PACKAGES[backend]]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    machine = f"{', '.join(names)}, {os.cpu_count()} cores"
    return (
        f"commit {told.stdout.strip()}; {machine}; Python {platform.python_version()}, "
        f"{versions}; "
        f"load average at the start {load}\n"
        f"{asked.workload}, {asked.style}, cpu; medians of n = {asked.n} [least, most]"
    )


def print_row(backend: str, field: str, rounds: list[dict[str, float]]) -> None:
    """Print the medians of one backend, and the medians of trainmark's part in each round."""
    cells = []
    for name in rounds[0]:
        cells.append(shown([each[name] for each in rounds]))
        if name not in ("import", "first use"):
            cells.append(shown([each[name] - each["first use"] for each in rounds]))
    print(f"| {backend} | {field} |", " | ".join(cells), "|", flush=True)


def shown(seconds: list[float]) -> str:
    """Return the median, the least and the most."""
    return f"{statistics.median(seconds):.2f} [{min(seconds):.2f}, {max(seconds):.2f}]"


def request_to_train(backend: str, workload: str, style: Style) -> Callable[[float], Any]:
    """Return what makes the request to train, given the reading of the clock at the start."""
    from trainmark.backends.base import Options
    from trainmark.data.cache import cache_dir, environment_dir
    from trainmark.data.locate import locate
    from trainmark.execute.protocol.worker_commands import Train
    from trainmark.workload.catalog import find

    spec = find(workload)
    folder = locate(spec.dataset, environment=environment_dir(), cache=cache_dir()).folder
    options = Options(
        style="idiomatic" if backend == "numpy" else style, device="cpu", precision="fp32", seed=1
    )

    def request(origin: float) -> Train:
        return Train(
            backend=backend,
            workload=spec,
            dataset=folder,
            options=options,
            origin=origin,
            inject_order=False,
            initial_weights=None,
            trainmark=None,
            log_every=None,
            weight_files=(None,),
            turns="until-stopped",
        )

    return request


def bare(statement: str) -> Taken:
    """Measure an interpreter up to the end of ``statement``."""
    origin = time.perf_counter()
    command = [sys.executable, "-c", f"{statement}; {TELL}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    end, processor, main_thread = map(float, done.stdout.split()[-3:])
    return Taken(end - origin, processor, main_thread)


def until_ready(request: Callable[[float], Any], source: Path) -> Taken:
    """Measure a process of the code in ``source`` up to its message that it is ready to train."""
    from trainmark.execute.parent import process
    from trainmark.execute.protocol.answers import Ready

    process.BOOTSTRAP = source.resolve() / "trainmark" / "execute" / "worker" / "bootstrap.py"
    found: list[Taken] = []

    def on_answer(answer: object) -> None:
        if isinstance(answer, Ready) and answer.seconds is not None:
            process_now = psutil.Process(worker.pid)
            all_threads = process_now.cpu_times()  # also those that have ended
            main_thread = next(each for each in process_now.threads() if each.id == worker.pid)
            processor = all_threads.user + all_threads.system
            found.append(
                Taken(answer.seconds, processor, main_thread.user_time + main_thread.system_time)
            )

    listener = process.Listener()
    with process.Worker(Path(sys.executable), request, on_answer) as worker:
        while not found:
            ready = listener.wait([worker])[worker]
            # This makes the next wait block, so that the worker has the cores.
            listener.is_time_to_sample()
            ending = worker.attend(ready)
            if ending is not None:
                raise SystemExit(f"the process ended: {ending.reason}\n{ending.tail}")
    return found[0]


def phases_of(request: Callable[[float], Any]) -> dict[str, float]:
    """Return the seconds of each phase of a measured process; another process reads the clock
    between the phases."""
    from trainmark.execute.protocol.wire import encoded, to_message

    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(encoded(to_message(request(time.perf_counter()))))
        file.flush()
        command = [sys.executable, __file__, "--phases-of", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


class Phases:
    """Reads the clock at the end of each phase."""

    def __init__(self) -> None:
        self.last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def end(self, name: str) -> None:
        """Count the time since the end of the last phase for the phase ``name``."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now

    def around(self, owner: Any, name: str, phase: str) -> None:
        """Replace a function with one that counts as a separate phase."""
        real = getattr(owner, name)

        def timed(*args: Any, **more: Any) -> Any:
            self.end("rest")
            found = real(*args, **more)
            self.end(phase)
            return found

        setattr(owner, name, timed)


def print_phases(file: Path) -> None:
    """Do what `execute/worker/bootstrap.py` does, and read the clock between the phases."""
    phases = Phases()
    source = ROOT / "src" / "trainmark"
    sys.path.insert(0, str(source / "execute" / "worker"))
    import bootstrap  # type: ignore[import-not-found]  # it is run as a file, as here

    bootstrap.adopt(source)
    import numpy  # noqa: F401

    phases.end("numpy")
    from trainmark.execute.protocol import worker_commands
    from trainmark.execute.protocol.answers import Ready
    from trainmark.execute.worker import main

    worker: Any = main
    phases.end("our modules")
    request = worker_commands.read(json.loads(file.read_text()))
    phases.end("request")
    real_load = worker.registry.load

    def load(name: str) -> Any:
        phases.end("rest")
        backend = real_load(name)
        phases.end("framework and backend, data beside it")
        phases.around(backend, "capabilities", "capabilities")
        real_trainer = backend.trainer

        def trainer(*args: Any) -> Any:
            phases.end("rest of the data")
            made = real_trainer(*args)
            phases.end("trainer")
            phases.around(made, "load", "weights and optimiser")
            return made

        backend.trainer = trainer
        return backend

    worker.registry.load = load
    phases.around(worker, "_first_weights", "initial weights")
    phases.around(worker.weight_files, "digest", "digest")

    def say(answer: object) -> None:
        if isinstance(answer, Ready):
            phases.end("rest")
            print(json.dumps(phases.seconds), flush=True)
            os._exit(0)

    assert isinstance(request, worker_commands.Train)
    worker.train(request, say, lambda: None, time.perf_counter, queue.SimpleQueue())


if __name__ == "__main__":
    main()
