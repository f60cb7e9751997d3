"""Every framework as its own documentation trains, against trainmark's styles: one run, in turns, on the same data.

    python bench/peers.py [--quick] [--workload NAME] [--rounds N] [--python mxnet=PATH] [--out FILE.json]

Prints a Markdown table per workload, and which bars trainmark's fastest side meets. Time is taken from outside, the
same way for all: see `rounds.py`; how each peer is written: `contenders/`; what the numbers mean: `standing.py`.

Needs the data of TRAINMARK_DATA and a machine with nothing else to do. A framework that is missing is left out, with
the reason. MXNet 1.9 needs an interpreter of its own, named by `--python` or TRAINMARK_MXNET_PYTHON.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import standing
from contenders import arrays
from rounds import Contender, Outcome, Patience, compete
from standing import BARS, LIMIT, OURS, Course

from trainmark import units
from trainmark.backends import registry
from trainmark.data.load import load
from trainmark.data.locate import locate
from trainmark.measure import machine
from trainmark.record.caveats import BUSY_SHARE
from trainmark.report.markdown import to_markdown
from trainmark.workload import catalog
from trainmark.workload.spec import Workload

SCRIPTS = Path(__file__).with_name("contenders")
PEERS = {
    "Keras fit": "keras_fit.py",
    "PyTorch DataLoader": "torch_loader.py",
    "PyTorch torch.compile": "torch_compiled.py",
    "JAX jitted step": "jax_step.py",
    "MXNet Module.fit": "mxnet_fit.py",
    "scikit-learn MLPClassifier": "sklearn_mlp.py",
}
SIDES = (("torch", "fast"), ("jax", "fast"), ("keras", "fast"), ("mxnet", "fast"))
MORE_SIDES = (("torch", "idiomatic"), ("jax", "idiomatic"), ("keras:torch", "fast"), ("keras:jax", "fast"))
"""Left to the long run, as is NumPy."""


@dataclasses.dataclass(frozen=True)
class Size:
    """How much a turn is. An epoch that is a single step would be over before it can be timed."""

    examples: int | None = None
    epochs_a_turn: int = 1


QUICK = {
    "mnist-mlp512": Size(6_400),
    "mnist-mlp128": Size(12_800),
    "mnist-mlp32": Size(None, 3),
    "mnist-cnn": Size(3_200),
    "cifar10-cnn": Size(384),
}
WHOLE = {
    "mnist-mlp512": Size(25_600),
    "mnist-mlp32": Size(None, 10),
    "mnist-cnn": Size(12_800),
    "cifar10-cnn": Size(1_280),
}
"""Of the long run; elsewhere the whole training set, once."""

QUICK_TEST_EXAMPLES = 2_000


def contenders(workload: str, epochs_a_turn: int, *, quick: bool, mxnet: Path | None) -> Iterator[Contender]:
    """All that take part; of those that need MXNet only if there is an interpreter for it."""
    here = Path(sys.executable)
    for name, script in PEERS.items():
        python = mxnet if script == "mxnet_fit.py" else here
        if python is not None:
            yield Contender(name, python, SCRIPTS / script, epochs_a_turn=epochs_a_turn)
    sides = [*SIDES, *(() if quick else MORE_SIDES)]
    if not quick and "mlp" in workload:  # convolutions in NumPy are there to be right
        styles = registry.load("numpy").capabilities().styles
        sides.append(("numpy", "fast" if "fast" in styles else "idiomatic"))
    for backend, style in sides:
        python = mxnet if backend == "mxnet" else here
        if python is not None:
            arguments = (backend, style)
            yield Contender(f"{OURS}{backend} {style}", python, SCRIPTS / "ours.py", arguments, epochs_a_turn)
    yield Contender(LIMIT, here, SCRIPTS / "limit.py", tested=False)


def race(workload: Workload, options: argparse.Namespace, conditions: list[str]) -> tuple[Course, Outcome]:
    """One workload, from its data to its table."""
    directory = locate(workload.dataset, environment=options.data_dir, cache=Path("unused"), download=False).directory
    data = load(workload.dataset, directory)
    size = (QUICK if options.quick else WHOLE).get(workload.name, Size())
    images, labels = (part[: size.examples] for part in (data.train.images, data.train.labels))
    tested = QUICK_TEST_EXAMPLES if options.quick else len(data.test)
    course = Course(workload, len(images), size.epochs_a_turn, min(tested, len(data.test)))
    entered = [
        each
        for each in contenders(workload.name, size.epochs_a_turn, quick=options.quick, mxnet=options.python)
        if not options.contender or each.name == LIMIT or any(part in each.name for part in options.contender)
    ]
    with tempfile.TemporaryDirectory(prefix="trainmark-peers-") as name:
        folder = Path(name)
        arrays.save(
            folder, x_train=images, y_train=labels, x_test=data.test.images[:tested], y_test=data.test.labels[:tested]
        )
        (folder / "workload.json").write_text(json.dumps(workload.to_data()))
        outcome = compete(entered, workload.name, folder, options.rounds, patience=options.patience)
    if options.python is None:
        outcome.left_out["MXNet Module.fit and trainmark mxnet"] = "no interpreter named: --python mxnet=PATH"
    print(to_markdown([standing.table(course, outcome, conditions)]), flush=True)
    return course, outcome


def as_data(course: Course, outcome: Outcome) -> dict[str, Any]:
    """Everything that was measured, and what was made of it."""
    return {
        "examples": course.examples,
        "epochs_a_turn": course.epochs_a_turn,
        "batch": course.batch,
        "flops_a_turn": course.flops_a_turn,
        "reference": standing.reference_of(outcome.seconds),
        "standings": [dataclasses.asdict(row) for row in standing.standings(course, outcome)],
        **dataclasses.asdict(outcome),
    }


def mxnet_python(written: str) -> Path:
    """The interpreter of ``mxnet=PATH``."""
    label, _, path = written.partition("=")
    if label != "mxnet" or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"expected mxnet=/path/to/bin/python, found {written!r}")
    return Path(path)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less data an epoch: all five in under 6 minutes")
    parser.add_argument("--workload", action="append", choices=sorted(BARS), help="default: all five")
    parser.add_argument("--contender", action="append", metavar="PART", help="only those whose name holds PART")
    parser.add_argument("--rounds", type=int, help="that count; default 4 with --quick, else 15")
    parser.add_argument("--python", type=mxnet_python, metavar="mxnet=PATH")
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("TRAINMARK_DATA"))
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    if options.data_dir is None:
        parser.error("expected TRAINMARK_DATA or --data-dir, a folder with MNIST and CIFAR-10")
    named = os.environ.get("TRAINMARK_MXNET_PYTHON")
    options.python = options.python or (Path(named) if named else None)
    options.rounds = options.rounds or (4 if options.quick else 15)
    options.patience = Patience(settle=0.1) if options.quick else Patience()
    return options


def revision() -> str | None:
    """The commit of this checkout, with a ``+`` where files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changed else "")


def main() -> None:
    options = parse()
    here = machine.describe(machine.cpu_load(1.0))
    busy = here.load_before is not None and here.load_before > BUSY_SHARE
    conditions = [
        f"{here.cpu}, {units.many(here.usable_cores or 0, 'core')} for every contender, threads as each framework "
        "chooses by itself; float32",
        *(["the machine was BUSY before the run: the times mean little"] if busy else []),
    ]
    results = {}
    for name in options.workload or list(BARS):
        results[name] = as_data(*race(catalog.find(name), options, conditions))
        if options.out:  # after each, so that a long run which is stopped leaves something
            about = {
                "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "command": sys.argv,
                "revision": revision(),
                "python": platform.python_version(),
                "machine": {field: getattr(here, field) for field in here.__struct_fields__},
                "patience": dataclasses.asdict(options.patience),
            }
            options.out.write_text(json.dumps({**about, "workloads": results}, indent=1))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leaves through `finally`, where all are ended
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
