"""Does ``parity`` raise false alarms, and does it find mistakes?

    python bench/parity.py steps FOLDER --workloads NAME,... --sides torch/fast,torch/idiomatic
    python bench/parity.py planted FOLDER [--seeds 20]
    python bench/parity.py summary FOLDER

``steps`` checks sides on one ``--device`` against the reference, seed by seed, in this process;
``planted`` does the same with PyTorch and one mistake at a time. Each seed is a line of
FOLDER/steps.jsonl or FOLDER/planted.jsonl, so both can be called again, and stop after
``--minutes``. Needs TRAINMARK_DATA.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trainmark.analysis.parity import SideParity, judge
from trainmark.backends import registry
from trainmark.backends.base import Backend, Options
from trainmark.data.locate import locate
from trainmark.execute.protocol.answers import NotChecked, StepChecked
from trainmark.execute.protocol.worker_commands import CheckParity, ComputeReference
from trainmark.execute.worker.parity_check import check_parity
from trainmark.execute.worker.parity_reference import compute_reference
from trainmark.record.checks import PARTS
from trainmark.workload.catalog import find
from trainmark.workload.optimizers import SGD
from trainmark.workload.reduce import reduced, with_batch
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(required=True)
    for name, part in (("steps", steps), ("planted", planted), ("summary", summary)):
        of = parts.add_parser(name)
        of.set_defaults(part=part)
        of.add_argument("folder", type=Path)
        if part is summary:
            continue
        of.add_argument("--seeds", type=int, default=20)
        of.add_argument("--minutes", type=float, default=1e9)
        if part is steps:
            of.add_argument("--workloads", type=lambda text: text.split(","), required=True)
            of.add_argument("--sides", type=lambda text: text.split(","), required=True)
            of.add_argument("--precision", default="fp32")
            of.add_argument("--device", default="cpu")
    options = parser.parse_args()
    # else JAX takes most of the GPU's memory
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    options.folder.mkdir(parents=True, exist_ok=True)
    options.part(options)


def steps(options: argparse.Namespace) -> None:
    """Compare sides with the reference."""
    until = time.monotonic() + 60 * options.minutes
    file = options.folder / "steps.jsonl"
    fields = ("workload", "side", "precision", "seed")
    done = {(*map(line.get, fields), line.get("device", "cpu")) for line in _lines(file)}
    for seed in range(1, options.seeds + 1):
        for name in options.workloads:
            key = [(name, side, options.precision, seed, options.device) for side in options.sides]
            left = [side for side, each in zip(options.sides, key, strict=True) if each not in done]
            if not left or time.monotonic() > until:
                continue
            with _reference_steps(_definition(name), options.precision, seed) as place:
                for side in left:
                    backend, style = side.split("/")
                    asked = Options(style, options.device, options.precision, seed)
                    found = _checked(_definition(name), backend, asked, place, registry.load)
                    _write(file, name, side, asked, found)


class _reference_steps:
    """The file of the reference's steps."""

    def __init__(self, workload: Workload, precision: str, seed: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._place = str(Path(self._folder.name) / "steps.npz")
        folder = _folder(workload)
        options = Options("idiomatic", "cpu", precision, seed)  # type: ignore[arg-type]
        compute_reference(
            ComputeReference("numpy", workload, folder, options, self._place), lambda _: None
        )

    def __enter__(self) -> str:
        return self._place

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _folder(workload: Workload) -> Any:
    folder = Path(os.environ["TRAINMARK_DATA"])
    found = locate(workload.dataset, environment=folder, cache=folder, download=False)
    return found.windows(
        workload.input.length if isinstance(workload.input, Tokens) else None
    ).folder


def _checked(
    workload: Workload,
    backend: str,
    options: Options,
    place: str,
    backends: Callable[[str], Backend],
) -> SideParity:
    checks = []
    notes = []

    def on_answer(answer: object) -> None:
        if isinstance(answer, StepChecked):
            checks.append(answer.checks)
        if isinstance(answer, NotChecked):
            notes.append(answer.what)

    request = CheckParity(backend, workload, _folder(workload), options, place, free_steps=0)
    check_parity(request, on_answer, lambda: None, backends)
    return judge(f"{backend} {options.style}", checks, notes)


def _write(file: Path, workload: str, side: str, options: Options, found: SideParity) -> None:
    mistake = found.mistake
    line = {
        "workload": workload,
        "side": side,
        "precision": options.precision,
        "seed": options.seed,
        "device": options.device,
        "near_kinks": found.near_kinks,
        "shares": found.shares,
        "part": mistake and mistake.part,
        "names": mistake and mistake.names,
        "suspects": mistake and mistake.suspects,
        "notes": found.notes,
    }
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")
    worst = max(found.shares.values())
    which = f"{workload} {side} {options.precision} seed {options.seed}"
    print(f"{which}: worst {worst:.3g}, {mistake and mistake.part}", flush=True)


def planted(options: argparse.Namespace) -> None:
    """Train with one mistake at a time."""
    import parity_mistakes
    import parity_mistakes_modern

    until = time.monotonic() + 60 * options.minutes
    file = options.folder / "planted.jsonl"
    done = {(line["side"], line["workload"], line["seed"]) for line in _lines(file)}
    by_workload = collections.defaultdict(list)
    for name, mistake in {**parity_mistakes.MISTAKES, **parity_mistakes_modern.MISTAKES}.items():
        for workload in mistake.workloads:
            by_workload[workload].append((name, mistake))
    for workload, mistakes in by_workload.items():
        for seed in range(1, options.seeds + 1):
            left = [
                (name, mistake) for name, mistake in mistakes if (name, workload, seed) not in done
            ]
            if not left or time.monotonic() > until:
                continue
            definition = _definition(workload)
            with _reference_steps(definition, "fp32", seed) as place:
                for name, mistake in left:
                    backend = mistake.backend()
                    asked = Options("fast", "cpu", "fp32", seed)
                    found = _checked(
                        definition, "torch", asked, place, {"torch": backend}.__getitem__
                    )
                    _write(file, workload, name, asked, found)


def _definition(name: str) -> Workload:
    """Return a workload: of the catalogue, ``:undecayed`` without decay of biases, ``:16`` with
    batches of 16.

    ``:small`` reduces today's networks as ``--size`` does.
    """
    base, _, change = name.partition(":")
    workload = find(base)
    if change == "undecayed":
        assert isinstance(workload.optimizer, SGD)
        optimizer = dataclasses.replace(workload.optimizer, decay_biases=False, weight_decay=5e-4)
        return dataclasses.replace(workload, optimizer=optimizer)
    if change == "small":
        small = reduced(workload, width=64 if workload.is_text else 8, depth=2)
        if isinstance(small.input, Tokens):
            return small
        # Images that large networks would need hours for.
        crop = min(64, *small.input.network_shape[:2])
        return with_batch(
            dataclasses.replace(small, input=dataclasses.replace(small.input, crop=crop)), 8
        )
    return with_batch(workload, int(change)) if change else workload


def summary(options: argparse.Namespace) -> None:
    """Print how many false alarms there were, and which mistakes were found."""
    groups = collections.defaultdict(list)
    for line in _lines(options.folder / "steps.jsonl"):
        groups[line["workload"], line["side"], line["precision"], line.get("device", "cpu")].append(
            line
        )
    print(
        f"{'workload':16} {'side':18} {'':5} {'':6} {'seeds':>5} {'false':>5}  largest share "
        "of its bound, by part"
    )
    for (workload, side, precision, device), lines in sorted(groups.items()):
        worst = {part: max(line["shares"].get(part, 0.0) for line in lines) for part in PARTS}
        false = sum(line["part"] is not None for line in lines)
        shares = ", ".join(f"{part} {share:.2g}" for part, share in worst.items() if share)
        seeds = len({line["seed"] for line in lines})
        print(f"{workload:16} {side:18} {precision:5} {device:6} {seeds:5} {false:5}  {shares}")
    found = collections.defaultdict(list)
    for line in _lines(options.folder / "planted.jsonl"):
        found[line["side"], line["workload"]].append(line)
    print(f"\n{'planted mistake':28} {'workload':24} found   part, and what is named")
    for (name, workload), lines in found.items():
        parts = collections.Counter(line["part"] for line in lines)
        hits = sum(line["part"] is not None for line in lines)
        named = collections.Counter(
            ", ".join((line["names"] or [])[:2]) for line in lines
        ).most_common(1)[0][0]
        print(
            f"{name:28} {workload:24} {hits:2}/{len(lines):2}   {dict(parts)} {named}; "
            f"{lines[0]['suspects']}"
        )


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        yield from map(json.loads, file.read_text().splitlines())


if __name__ == "__main__":
    main()
