"""The source of a user's script, with edits."""

from __future__ import annotations

import difflib
import os
import re
import tokenize
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_ODD_ENDS = re.compile(r"[\r\f\v\x1c-\x1e\x85\u2028\u2029]")
"""Characters that also end a line somewhere."""
Edit = Callable[[str, int], str | None]
"""Takes a source and a line; returns the edited source, or None."""


class Source:
    """The files of a script.

    Args:
        folder: its working folder, outside of which nothing is edited.
        edited: text of files that were edited, by their path from the folder.
    """

    def __init__(self, folder: Path, edited: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self.edited = dict(edited or {})

    def original(self, file: str) -> str | None:
        """Return the text of a file; None if it can't be read, or is not in the folder.

        A file that is not plain UTF-8 with the usual ends of lines is left alone: its bytes must
        not change elsewhere.
        """
        path = (self._folder / file).resolve()
        if not path.is_relative_to(self._folder.resolve()):
            return None
        try:
            with path.open("rb") as opened:
                encoding, _ = tokenize.detect_encoding(opened.readline)
            text = path.read_bytes().decode("utf-8")
        except (OSError, SyntaxError, ValueError):
            return None
        is_plain = encoding == "utf-8" and not _ODD_ENDS.search(text)
        return text if is_plain else None

    def text(self, file: str) -> str | None:
        """Return the text of a file, with its edits."""
        return self.edited[file] if file in self.edited else self.original(file)

    def with_edit(self, place: str, edit: Edit) -> Source | None:
        """Return the source with an edit at a place; None if it can't be made.

        Args:
            place: ``file:line`` in the original.
            edit: takes the text and the line where that line is now.
        """
        file, _, line = place.rpartition(":")
        if not line.isdecimal():  # a cell of a notebook
            return None
        file = os.path.normpath(file)
        before = self.original(file)
        now = self.text(file)
        if before is None or now is None:
            return None
        after = edit(now, moved(before, now, int(line)))
        return None if after is None else Source(self._folder, {**self.edited, file: after})

    def line_of(self, place: str) -> int:
        """Return where a line of the original is now."""
        file, _, line = place.rpartition(":")
        return moved(self.original(file) or "", self.text(file) or "", int(line))

    def diff(self) -> str:
        """Return the edits as a unified diff, which ``git apply`` and ``patch -p1`` take."""
        return "".join(
            line
            for file, after in sorted(self.edited.items())
            for line in _diff(file, self.original(file) or "", after)
        )


def moved(before: str, after: str, line: int) -> int:
    """Return where a line of a text is in an edited one."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        if start < line <= end:
            return min(new_start + line - start, max(new_end, 1))
    return line


def _diff(file: str, before: str, after: str) -> Sequence[str]:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{file}",
        f"b/{file}",
    )
    return [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    ]
