"""stdin, stdout and stderr, whatever trainmark was started with: closed, full, read by nobody, short of letters.

What is printed is lost with an error. What is only said on the way, on stderr, may be lost: no run ends for it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from trainmark.errors import PrintingFailed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ReaderGone(Exception):
    """Nobody reads stdout any more, as after ``| head``; there is nothing to say to anybody."""


def stand_on_three() -> None:
    """Make the three streams such that nothing else has to think of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # it was closed, and the next file that is opened would take its place
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = _on(_Printed, 1, sys.stdout)
    sys.stderr = _on(_Said, 2, sys.stderr)


class _Printed(io.FileIO):
    def write(self, content: ReadableBuffer) -> int:
        try:
            return super().write(content)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # what is still to come would fail once more
            if isinstance(error, BrokenPipeError):
                raise ReaderGone from error
            raise PrintingFailed("what is printed can't be written", found=error.strerror or str(error)) from error


class _Said(io.FileIO):
    def write(self, content: ReadableBuffer) -> int:
        with contextlib.suppress(OSError):
            return super().write(content)
        return memoryview(content).nbytes


def _on(kind: type[io.FileIO], number: int, old: TextIO) -> TextIO:
    """A stream like ``old``; one that is no file, such as the console of Windows, stays."""
    raw = getattr(getattr(old, "buffer", None), "raw", getattr(old, "buffer", None))
    if not (isinstance(old, io.TextIOWrapper) and isinstance(raw, io.FileIO)):
        return old
    return io.TextIOWrapper(
        io.BufferedWriter(kind(number, "w", closefd=False)),
        encoding=old.encoding,
        errors="replace",  # a terminal that lacks a letter gets a question mark for it
        line_buffering=old.line_buffering or old.write_through,
    )
