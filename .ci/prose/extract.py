"""Write comments and docstrings of the Python files to text files, which the prose check reads.

    python .ci/prose/extract.py FOLDER

One text file for each folder of the repository. Each passage is one line that begins with its
place, such as `src/trainmark/units.py:12:`, so that a complaint can be found.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "plugins", "bench", "tests", "examples", "fuzz")


def passages(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring and of each block of comments."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        number = token.start[0]
        if block and number > last + 1:
            yield start, " ".join(block)
            block = []
        if not block:
            start = number
        block.append(token.string.lstrip("#").strip())
        last = number
    if block:
        yield start, " ".join(block)


def main(out: Path) -> None:
    """Write one text file for each folder."""
    out.mkdir(parents=True, exist_ok=True)
    for folder in FOLDERS:
        lines = []
        for file in sorted((ROOT / folder).rglob("*.py")):
            name = file.relative_to(ROOT)
            for number, text in sorted(passages(file.read_text("utf-8"))):
                lines.append(f"{name}:{number}: {' '.join(text.split())}")
        (out / f"{folder}.txt").write_text("\n\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
