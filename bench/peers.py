"""Compare trainmark's styles with the training loops of each framework's documentation, interleaved
on the same data.

    python bench/peers.py [--quick] [--workload NAME] [--rounds N] [--python mxnet=P] [--out FILE]
    python bench/peers.py --show FILE

It prints a Markdown table per workload, and whether each of trainmark's styles is as fast as the
peer with the same loop. Time is measured from outside, the same way for all (`rounds.py`).
`contenders/` has a script for each peer; `ranking.py` makes the tables. With --out a workload is
added to the file or replaced in it, so a long run can be done one workload at a time; --show prints
the tables of such a file.

It needs the data of TRAINMARK_DATA and an idle machine. A missing framework is left out, with the
reason. MXNet 1.9 needs its own interpreter, named by --python or TRAINMARK_MXNET_PYTHON, in which
plugins/trainmark-mxnet is installed. scikit-learn comes with `pip install -r
bench/requirements.txt`.
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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ranking
from contenders import arrays
from ranking import LIMIT, OURS, RacePlan
from rounds import Contender, Outcome, Timeouts, compete

from trainmark import units
from trainmark.data.load import load
from trainmark.data.locate import locate
from trainmark.measure import machine
from trainmark.measure.neighbours import read_load
from trainmark.record.caveats import BUSY_SHARE
from trainmark.report.markdown import to_markdown
from trainmark.workload import catalog
from trainmark.workload.spec import Workload

SCRIPTS = Path(__file__).with_name("contenders")
PEERS = {  # script and arguments
    "Keras fit": ("keras_fit.py",),
    "PyTorch DataLoader": ("torch_loader.py",),
    "PyTorch torch.compile": ("torch_compiled.py",),
    "PyTorch DataLoader, per image": ("torch_loader.py", "per-image"),
    "PyTorch torch.compile, per image": ("torch_compiled.py", "per-image"),
    "JAX jitted step": ("jax_step.py",),
    "MXNet Module.fit": ("mxnet_fit.py",),
    "scikit-learn MLPClassifier": ("sklearn_mlp.py",),
}
SIDES = (
    ("torch", "idiomatic"),
    ("torch", "compiled"),
    ("torch", "fast"),
    ("jax", "idiomatic"),
    ("jax", "fast"),
    ("keras", "idiomatic"),
    ("keras", "compiled"),
    ("keras", "fast"),
    ("mxnet", "idiomatic"),
    ("mxnet", "fast"),
)
"""Loops of trainmark, by backend and style, without styles that their backend does not have."""


@dataclasses.dataclass(frozen=True)
class Size:
    """The size of a turn: an epoch of a single step would be too short to time."""

    examples: int | None = None
    epochs_a_turn: int = 1


WORKLOADS = ("mnist-mlp512", "mnist-mlp128", "mnist-mlp32", "mnist-cnn", "cifar10-cnn")
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
"""Size of a turn of the long run. Workloads that are missing here use the whole training set
once."""

QUICK_TEST_EXAMPLES = 2_000


def contenders(epochs_a_turn: int, mxnet: Path | None) -> Iterator[Contender]:
    """All contenders; those of MXNet only if there is an interpreter for it."""
    here = Path(sys.executable)
    for name, (script, *peer_arguments) in PEERS.items():
        python = mxnet if script == "mxnet_fit.py" else here
        if python is not None:
            yield Contender(name, python, SCRIPTS / script, tuple(peer_arguments), epochs_a_turn)
    for backend, style in SIDES:
        python = mxnet if backend == "mxnet" else here
        if python is not None:
            arguments = (backend, style)
            yield Contender(
                f"{OURS}{backend} {style}", python, SCRIPTS / "ours.py", arguments, epochs_a_turn
            )
    yield Contender(LIMIT, here, SCRIPTS / "limit.py", tested=False)


def race(workload: Workload, options: argparse.Namespace) -> tuple[RacePlan, Outcome]:
    """Run one workload."""
    directory = locate(
        workload.dataset, environment=options.data_dir, cache=Path("unused"), download=False
    ).directory
    data = load(workload.dataset, directory)
    size = (QUICK if options.quick else WHOLE).get(workload.name, Size())
    images, labels = (part[: size.examples] for part in (data.train.images, data.train.labels))
    tested = QUICK_TEST_EXAMPLES if options.quick else len(data.test)
    plan = RacePlan(workload, len(images), size.epochs_a_turn, min(tested, len(data.test)))
    entered = [
        each
        for each in contenders(size.epochs_a_turn, options.python)
        if not options.contender
        or each.name == LIMIT
        or any(part in each.name for part in options.contender)
    ]
    with tempfile.TemporaryDirectory(prefix="trainmark-peers-") as name:
        folder = Path(name)
        arrays.save(
            folder,
            x_train=images,
            y_train=labels,
            x_test=data.test.images[:tested],
            y_test=data.test.labels[:tested],
        )
        whole = workload.with_schedule(steps_per_epoch=None)
        (folder / "workload.json").write_text(json.dumps(whole.to_data()))
        outcome = compete(entered, workload.name, folder, options.rounds, timeouts=options.timeouts)
    if options.python is None:
        outcome.left_out["MXNet Module.fit and trainmark mxnet"] = (
            "no interpreter named: --python mxnet=PATH"
        )
    return plan, outcome


def conditions() -> list[str]:
    """Describe the machine."""
    here = machine.describe(read_load(1.0).taken)
    said = [
        f"{here.cpu}, {units.many(here.usable_cores or 0, 'core')} for every contender, threads "
        "as each framework "
        f"chooses by itself; float32; Python {platform.python_version()}; commit "
        f"{revision() or 'unknown'}"
    ]
    if here.load_before is not None and here.load_before > BUSY_SHARE:
        said.append("the machine was BUSY before the run: do not trust the times")
    return said


def as_data(plan: RacePlan, outcome: Outcome, told: list[str]) -> dict[str, Any]:
    """Return everything that was measured on a workload."""
    return {
        "examples": plan.examples,
        "epochs_a_turn": plan.epochs_a_turn,
        "test_examples": plan.test_examples,
        "conditions": told,
        "command": sys.argv,
        "outcome": dataclasses.asdict(outcome),
    }


def shown(name: str, kept: dict[str, Any]) -> str:
    """Return the table of a workload, from :func:`as_data`."""
    plan = RacePlan(
        catalog.find(name), kept["examples"], kept["epochs_a_turn"], kept["test_examples"]
    )
    return to_markdown([ranking.table(plan, Outcome(**kept["outcome"]), kept["conditions"])])


def read(file: Path | None) -> dict[str, Any]:
    """Read the workloads of an earlier run, by name; none without a file."""
    workloads: dict[str, Any] = (
        json.loads(file.read_text())["workloads"] if file and file.exists() else {}
    )
    return workloads


def mxnet_python(written: str) -> Path:
    """Return the interpreter of ``mxnet=PATH``."""
    label, _, path = written.partition("=")
    if label != "mxnet" or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"expected mxnet=/path/to/bin/python, found {written!r}")
    return Path(path)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="less data per epoch and fewer rounds")
    parser.add_argument(
        "--workload", action="append", choices=sorted(WORKLOADS), help="default: all five"
    )
    parser.add_argument(
        "--contender",
        action="append",
        metavar="PART",
        help="only contenders whose name contains PART",
    )
    parser.add_argument(
        "--rounds", type=int, help="rounds that count; default 4 with --quick, otherwise 15"
    )
    parser.add_argument("--python", type=mxnet_python, metavar="mxnet=PATH")
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("TRAINMARK_DATA"))
    parser.add_argument(
        "--out", type=Path, metavar="FILE.json", help="add the results to this file"
    )
    parser.add_argument(
        "--show", type=Path, metavar="FILE.json", help="only print the tables of this file"
    )
    options = parser.parse_args()
    if options.data_dir is None and options.show is None:
        parser.error("expected TRAINMARK_DATA or --data-dir, a folder with MNIST and CIFAR-10")
    named = os.environ.get("TRAINMARK_MXNET_PYTHON")
    options.python = options.python or (Path(named) if named else None)
    options.rounds = options.rounds or (4 if options.quick else 15)
    options.timeouts = Timeouts(settle=0.1) if options.quick else Timeouts()
    return options


def revision() -> str | None:
    """Return the commit of this checkout, with a ``+`` if files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        ).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain"], check=True, capture_output=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changed else "")


def main() -> None:
    options = parse()
    if options.show:
        print("\n".join(shown(name, kept) for name, kept in read(options.show).items()))
        return
    for name in options.workload or WORKLOADS:
        told = conditions()
        start = time.monotonic()
        plan, outcome = race(catalog.find(name), options)
        told.append(
            f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC; took "
            f"{units.seconds(time.monotonic() - start)} with setting up"
        )
        kept = as_data(plan, outcome, told)
        print(shown(name, kept), flush=True)
        if options.out:  # after each workload, so that a run that is stopped leaves something
            workloads = {**read(options.out), name: kept}
            ordered = {each: workloads[each] for each in WORKLOADS if each in workloads}
            options.out.write_text(json.dumps({"workloads": ordered}, indent=1))


if __name__ == "__main__":
    # leaves through `finally`, where all are ended
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
