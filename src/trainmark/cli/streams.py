"""Make stdin, stdout and stderr safe.

They may be closed, full, without a reader, or unable to encode a character.

A failed write to stdout is an error. A failed write to stderr is ignored, so that it never ends a
run.
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
    """The reader of stdout has gone, as after ``| head``; trainmark exits silently."""


def stand_on_three() -> None:
    """Open closed streams on the null device, and wrap stdout and stderr."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # it is closed, and the next file that is opened would get its number
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = _on(_Printed, 1, sys.stdout)
    sys.stderr = _on(_Said, 2, sys.stderr)


def losing_output(*, is_allowed: bool) -> contextlib.AbstractContextManager[None]:
    """Return a context in which output may be lost, such as after its terminal was closed."""
    if is_allowed:
        return contextlib.suppress(PrintingFailed, ReaderGone)
    return contextlib.nullcontext()


class _Printed(io.FileIO):
    def write(self, content: ReadableBuffer) -> int:
        try:
            return super().write(content)
        except OSError as error:
            # Later writes would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                raise ReaderGone from error
            raise PrintingFailed(
                "can't write to stdout", found=error.strerror or str(error)
            ) from error


class _Said(io.FileIO):
    def write(self, content: ReadableBuffer) -> int:
        with contextlib.suppress(OSError):
            return super().write(content)
        return memoryview(content).nbytes


def _on(kind: type[io.FileIO], number: int, old: TextIO) -> TextIO:
    """Wrap ``old``; a stream that is not a file is returned as it is."""
    raw = getattr(getattr(old, "buffer", None), "raw", getattr(old, "buffer", None))
    if not (isinstance(old, io.TextIOWrapper) and isinstance(raw, io.FileIO)):
        return old
    return io.TextIOWrapper(
        io.BufferedWriter(kind(number, "w", closefd=False)),
        encoding=old.encoding,
        errors="replace",  # characters that the terminal can't encode become question marks
        line_buffering=old.line_buffering or old.write_through,
    )
