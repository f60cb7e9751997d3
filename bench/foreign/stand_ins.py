"""Makes data of equal shape in place of what a script would download."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

TEXT = Path("shakespeare/input.txt")
"""Where Tiny Shakespeare is in the folder of ``TRAINMARK_DATA``."""


def make(name: str, folder: Path) -> None:
    """Make what a script needs in its working folder.

    Args:
        name: a key of :data:`MAKERS`, or ``folder NAME``, which makes an empty one.
        folder: the working folder of the script.
    """
    kind, _, argument = name.partition(" ")
    if kind == "folder":
        (folder / argument).mkdir(exist_ok=True)
    else:
        MAKERS[name](folder)


def _nothing(_folder: Path) -> None:
    """The packages next to this file or variables of the environment are enough."""


def _sine_waves(folder: Path) -> None:
    """The script of the repository makes its own data."""
    subprocess.run([sys.executable, "generate_sine_wave.py"], cwd=folder, check=True)


def _shakespeare() -> str:
    found = sorted(Path(os.environ["TRAINMARK_DATA"]).rglob("*hakespeare*/*.txt"))
    return found[0].read_text("utf-8")


def _text(folder: Path) -> None:
    """Three parts of a text, instead of WikiText-2."""
    lines = _shakespeare().splitlines(keepends=True)
    target = folder / "data" / "wikitext-2"
    target.mkdir(parents=True, exist_ok=True)
    parts = {"train": lines[:4000], "valid": lines[4000:4400], "test": lines[4400:4800]}
    for name, part in parts.items():
        (target / f"{name}.txt").write_text("".join(part), "utf-8")


def _characters(folder: Path) -> None:
    """The script of the repository encodes a text next to it."""
    data = folder / "data" / "shakespeare_char"
    (data / "input.txt").write_text(_shakespeare(), "utf-8")
    subprocess.run([sys.executable, "prepare.py"], cwd=data, check=True, capture_output=True)


def _citations(folder: Path) -> None:
    """A graph of 2,708 papers of 7 classes with 1,433 words, as Cora has."""
    drawn = random.Random(0)
    papers = 2708
    words = 1433
    classes = 7
    target = folder / "cora"
    target.mkdir(exist_ok=True)
    lines: list[str] = []
    for paper in range(papers):
        of = paper % classes
        has = {drawn.randrange(words) for _ in range(9)} | {of * 200 + k for k in range(9)}
        values = (str(int(word in has)) for word in range(words))
        lines.append("\t".join(itertools.chain([str(paper)], values, [f"class{of}"])))
    (target / "cora.content").write_text("\n".join(lines) + "\n")
    cites = (f"{drawn.randrange(papers)}\t{drawn.randrange(papers)}" for _ in range(5429))
    (target / "cora.cites").write_text("\n".join(dict.fromkeys(cites)) + "\n")


MAKERS: dict[str, Callable[[Path], None]] = {
    "images": _nothing,
    "no window": _nothing,
    "sine waves": _sine_waves,
    "text": _text,
    "characters": _characters,
    "citations": _citations,
}
"""What makes each stand-in."""
