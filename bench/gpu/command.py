"""The command line: which items to measure, in which folder, on which device."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from gpu import facts, store, wheels
from gpu.items import ITEMS, find
from gpu.page import writer
from gpu.process import Processes
from gpu.runner import Missing, measure_item
from gpu.session import Session

PAGE = "page"


def main() -> int:
    """Measure the named items; return 0 if none of their results is missing."""
    options = parse()
    start = time.monotonic()
    # Both signals end the current measurement; its results so far are kept.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if options.items == [PAGE]:
        writer.write(folder)
        return 0
    with tempfile.TemporaryDirectory(prefix="trainmark-gpu-") as scratch:
        packages = wheels.packages(options.wheels, Path(scratch))
        sys.path[1:1] = packages
        wheels.require_modules()
        context = facts.context(options.device, quick=options.quick, commit=options.commit)
        session = Session(
            folder=folder,
            device=options.device,
            quick=options.quick,
            processes=Processes(Path(scratch), _environment(packages)),
            context=context,
            instead=options.instead,
            nanogpt=options.nanogpt,
        )
        store.require_same_conditions(folder, [item.name for item in ITEMS], context)
        missing = measure_items(session, options.items, start, options.limit)
    print(f"{folder / 'README.md'} is written.")
    for each in missing:
        print(f"missing: {each}")
    if not missing:
        print("Nothing is missing.")
    return 1 if missing else 0


def measure_items(
    session: Session, names: list[str], start: float, limit: float | None
) -> list[Missing]:
    """Measure items one after the other.

    Args:
        session: what all measurements share.
        names: names of the items.
        start: when the command began, on the monotonic clock.
        limit: seconds for all of them; None keeps the limit of each.
    """
    missing = []
    begin = start
    for name in names:
        item = find(name)
        deadline = begin + item.limit
        if limit is not None:
            deadline = start + limit if len(names) == 1 else min(deadline, start + limit)
        missing += measure_item(item, session, deadline)
        begin = time.monotonic()
    return missing


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python bench/gpu",
        description="Measure items of the agenda on a GPU, and write one page about them.",
        epilog="items:\n"
        + "\n".join(f"  {item.name:12} {item.question} ({item.limit:.0f} s)" for item in ITEMS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "items",
        type=_items,
        metavar="ITEM[,ITEM...]",
        help="items, or `page` to write only the page",
    )
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="folder for results; existing ones are kept"
    )
    parser.add_argument(
        "--limit",
        type=float,
        metavar="SECONDS",
        help="time limit for all items; default: the limit of each item",
    )
    parser.add_argument(
        "--device", default="cuda:0", help="the GPU, or `cpu` for a rehearsal; default: %(default)s"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a rehearsal with tiny sizes",
    )
    parser.add_argument(
        "--wheels", type=Path, metavar="DIR", help="wheels of the modules that this Python lacks"
    )
    parser.add_argument(
        "--nanogpt",
        type=Path,
        metavar="DIR",
        help="a checkout of nanoGPT",
    )
    parser.add_argument("--commit", help="commit to print if git can't tell it")
    parser.add_argument(
        "--instead",
        type=_pairs,
        default={},
        metavar="NAME=BACKEND,...",
        help="rehearse with other backends",
    )
    return parser.parse_args()


def _items(text: str) -> list[str]:
    names = text.split(",")
    known = [item.name for item in ITEMS]
    unknown = [name for name in names if name not in known]
    if unknown and names != [PAGE]:
        raise argparse.ArgumentTypeError(
            f"expected some of {', '.join(known)}, or {PAGE}; found {', '.join(unknown)}"
        )
    return names


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(","))


def _environment(packages: list[str]) -> dict[str, str]:
    """Let the measured processes find trainmark, its requirements and this package."""
    before = os.environ.get("PYTHONPATH")
    path = [
        str(wheels.ROOT / "src"),
        str(wheels.ROOT / "bench"),
        *packages,
        *([before] if before else []),
    ]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
