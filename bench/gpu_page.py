"""The page that `bench/gpu.py` writes: what was measured on which machine, and what is missing."""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

VERSIONS = ("torch", "jax", "jaxlib", "keras", "tensorflow", "numpy")


@dataclass(frozen=True)
class Outcome:
    """What a section came to.

    Args:
        problems: what failed, did not fit or was left out; empty when all was done.
        text: Markdown.
    """

    title: str
    seconds: float
    problems: list[str]
    text: str


@dataclass
class Page:
    """The outcomes so far, kept in ``sections.json`` of the folder between calls."""

    folder: Path
    head: list[str] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self._kept.exists():
            self.outcomes = {name: Outcome(**kept) for name, kept in json.loads(self._kept.read_text()).items()}

    @property
    def complete(self) -> bool:
        """Whether every section did all that it should."""
        return not any(outcome.problems for outcome in self.outcomes.values())

    def is_done(self, name: str) -> bool:
        """Whether a call with this folder did the section, with nothing missing."""
        return name in self.outcomes and not self.outcomes[name].problems

    def keep(self, name: str, outcome: Outcome) -> None:
        """Take the outcome of a section, in place of an earlier one."""
        self.outcomes[name] = outcome

    def write(self) -> str:
        """Write the page and return it."""
        problems = [
            f"- **{outcome.title}**: {problem}"
            for outcome in self.outcomes.values()
            for problem in map(_indented, outcome.problems)
        ]
        parts = [
            "# Measured by `bench/gpu.py`",
            "\n".join(f"- {line}" for line in self.head),
            "## Failed or left out",
            "\n".join(problems) or "Nothing.",
        ]
        for outcome in self.outcomes.values():
            if outcome.text:
                parts += [f"## {outcome.title}", outcome.text.strip(), f"({outcome.seconds:.0f} s)"]
        text = "\n\n".join(parts) + "\n"
        self._kept.write_text(json.dumps({name: asdict(outcome) for name, outcome in self.outcomes.items()}, indent=1))
        (self.folder / "README.md").write_text(text)
        return text

    @property
    def _kept(self) -> Path:
        return self.folder / "sections.json"


def head(
    device: str,
    limit: float,
    commit: str | None,
    quick: bool,
    sides: Sequence[tuple[str, str | None]],
    absent: Sequence[str],
    datasets: Collection[str],
) -> list[str]:
    """The lines at the top.

    Args:
        sides: backends that see the device, each with its name for it.
        absent: why a backend is left out.
        datasets: names of those that are here.
    """
    from trainmark.measure import machine
    from trainmark.measure.neighbours import read_load

    here = machine.describe(read_load(1.0).taken)
    memory = f", {here.memory_bytes / 2**30:.0f} GiB" if here.memory_bytes else ""
    names = list(dict.fromkeys(name for _, name in sides if name))
    busy = f"{here.load_before:.0%} of the CPU in use by others at the start" if here.load_before is not None else ""
    lines = [
        f"Date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"Machine: {here.cpu}, {here.usable_cores} cores{memory}, {here.os}; {busy}",
        f"Device: {device}, {', '.join(names) or 'seen by no framework'}; GPUs here: {', '.join(here.gpus) or 'none'}",
        f"Driver: {here.gpu_driver or 'none'}, CUDA {here.cuda or '-'}",
        f"Versions: Python {platform.python_version()}, {', '.join(_versions())}",
        f"Commit: {revision() or commit or 'unknown: no git here, and no --commit'}",
        f"Limit: {limit:.0f} s{', --quick: 20 steps of everything, so the speeds mean nothing' if quick else ''}",
        "MNIST: " + ("the real one" if "mnist" in datasets else "not here, so **synthetic digits** took its place"),
        f"Command: `{' '.join(['python', 'bench/gpu.py', *sys.argv[1:]])}`",
    ]
    return [*lines, *(f"Left out: {_indented(each)}" for each in absent)]


def revision() -> str | None:
    """The commit of this checkout, with a ``+`` if files differ from it; None without git."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changed else "")


def peak_tables(folder: Path, groups: Sequence[dict[str, Any]]) -> str:
    """Measured peaks, and the share of them that each training reached.

    Args:
        folder: holds folders of records.
        groups: of ``trainmark compare --format json``.
    """
    best: dict[tuple[str, str, str], tuple[float, float]] = {}
    for file in sorted(folder.glob("*/*.json")):
        record = json.loads(file.read_text())
        peaks = record["peaks"]
        if peaks is None or peaks["matmul_flops_per_second"] is None:
            continue
        key = (record["backend"]["name"], record["device"]["id"], record["backend"]["precision"])
        found = (peaks["matmul_flops_per_second"], peaks["copy_bytes_per_second"] or 0.0)
        best[key] = max(best.get(key, found), found)
    peaks = [(*key, f"{flops / 1e12:.2f}", f"{copied / 1e9:.0f}") for key, (flops, copied) in sorted(best.items())]
    reached = []
    for group in groups:
        key, efficiency, pace = group["key"], group["efficiency"] or {}, group["samples_per_second"]
        if not pace:
            continue
        python = "" if key["python"] == "default" else f"@{key['python']}"
        flops, share = efficiency.get("flops_per_second"), efficiency.get("mfu")
        numbers = (f"{pace:,.0f}", f"{flops / 1e12:.3f}" if flops else "-", f"{share:.1%}" if share else "-")
        reached.append(
            (key["workload"], key["backend"] + python, key["style"], key["device"], key["precision"], *numbers)
        )
    columns = ("framework", "device", "precision", "matrix products, TFLOP/s", "copy, GB/s")
    more = ("workload", "framework", "style", "device", "precision", "samples/s", "TFLOP/s", "of the peak")
    return f"{_table(columns, peaks, 3)}\n\n{_table(more, sorted(set(reached)), 5)}"


def last_lines(text: str, lines: int = 8) -> str:
    """The end of what a command printed."""
    return "\n".join([line.rstrip() for line in text.splitlines() if line.strip()][-lines:])


def as_code(text: str) -> str:
    """A block that Markdown leaves alone; empty without text."""
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


def _indented(text: str) -> str:
    """A line of a list, with further lines as a block of code in it."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([first, "", "  ```text", *(f"  {line}" for line in rest), "  ```"]) if rest else first


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """Markdown; the first ``texts`` columns are text, the others numbers."""
    rules = ["---"] * texts + ["---:"] * (len(columns) - texts)
    return "\n".join(f"| {' | '.join(row)} |" for row in [columns, rules, *rows])


def _versions() -> list[str]:
    found = []
    for name in VERSIONS:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return found
