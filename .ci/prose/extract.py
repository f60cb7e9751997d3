"""Write the prose of Python files to build/prose, where textlint can check it.

Comments, docstrings and the descriptions under constants keep the line on which they begin, and
their paragraphs become one line. So textlint reports `build/prose/src/trainmark/x.py.txt` 12:5 for
a sentence that begins on line 12 of `src/trainmark/x.py`, and a phrase is found across line breaks.
The name of a test is checked as a sentence.
"""

from __future__ import annotations

import ast
import io
import re
import shutil
import tokenize
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("src", "plugins", "bench", "tests", "examples", "fuzz", ".ci")
"""Where the Python files are that people read."""

OUT = Path("build/prose")
INLINE_CODE = re.compile(r"`[^`]*`")
CODE_LINE = re.compile(r"^\s*(>>>|\.\.\.|::|--)")
ARGUMENT = re.compile(r"^[a-z_0-9]+(, [a-z_0-9]+)*: ")
DIRECTIVE = re.compile(r"^(!|noqa|type:|pragma:|fmt:|mypy:|ruff:|pylint:)")


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield each text with the line of the source on which it begins."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str(text))):
                yield from paragraphs_of(text, node.lineno)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if name.startswith("test_"):
                yield node.lineno, name.removeprefix("test_").replace("_", " ")
    yield from comments_of(source)


def paragraphs_of(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a docstring, each as one line, without lines of code."""
    words: list[str] = []
    begins = first
    for number, line in enumerate(text.splitlines(), first):
        if CODE_LINE.match(line) or not line.strip():
            if words:
                yield begins, " ".join(words)
            words = []
            continue
        if not words:
            begins = number
        words.append(ARGUMENT.sub("", line.strip()) if line[:1] == " " else line.strip())
    if words:
        yield begins, " ".join(words)


def comments_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments; neighbouring lines with nothing but a comment are one text."""
    words: list[str] = []
    begins = 0
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = token.string.lstrip("#").strip()
        if DIRECTIVE.match(text):
            continue
        number = token.start[0]
        alone = not token.line[: token.start[1]].strip()
        if words and not (alone and number == last + 1):
            yield begins, " ".join(words)
            words = []
        if not words:
            begins = number
        words.append(text)
        last = number
    if words:
        yield begins, " ".join(words)


def extract(path: Path) -> str:
    """Return the prose of a file, in which each text has the line number that it has there."""
    source = path.read_text("utf-8")
    lines = [""] * (source.count("\n") + 2)
    for number, text in prose_of(source):
        text = INLINE_CODE.sub("`code`", text)
        lines[number] = f"{lines[number]} | {text}" if lines[number] else text
    return "\n".join(lines[1:])


def main() -> None:
    """Write all prose anew."""
    shutil.rmtree(OUT, ignore_errors=True)
    for folder in FOLDERS:
        for path in sorted(Path(folder).rglob("*.py")):
            target = OUT / f"{path}.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(extract(path), "utf-8")


if __name__ == "__main__":
    main()
