"""Messages and JSON. With ``--json``, only JSON goes to stdout."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any

import click

from trainmark import regular
from trainmark.cli.configuration.named_options import TrustedOption
from trainmark.errors import OutputError
from trainmark.masking import Secrets, mask_command_line
from trainmark.report.console import console, draw_all
from trainmark.report.printable import STEERING, printable
from trainmark.units import many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from trainmark.analysis.results import Comparison
    from trainmark.record.record import Record
    from trainmark.report.table import Table
    from trainmark.terminal.observer import TerminalObserver

json_option: Callable[[Any], Any] = click.option(
    "--json", "as_json", is_flag=True, help="Print only JSON on stdout."
)

_FORMS = {"markdown": "markdown", "svg": "a picture of the terminal (SVG)"}
EXPORTS = ("json", "markdown", "csv", "svg")


class OutputFile(click.Path):
    """A file to write, whose folder is checked before anything is measured."""

    def __init__(self) -> None:
        super().__init__(path_type=pathlib.Path, dir_okay=False)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> pathlib.Path:
        """Return the path; raises :class:`~trainmark.errors.OutputError`."""
        path = pathlib.Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.exists():  # a file, or a device or pipe, whose folder does not matter
            return path
        folder = pathlib.Path(os.path.realpath(path)).parent  # a link is followed when written
        if not folder.is_dir():
            raise _unwritable(path, os.strerror(errno.ENOENT))
        if not os.access(folder, os.W_OK):
            raise _unwritable(path, os.strerror(errno.EACCES))
        return path


def file_option(
    flag: str, text: str, *others: str, default: Path | None = None
) -> Callable[[Any], Any]:
    """Return an option that takes a file to write; ``others`` are its other names."""
    return click.option(
        flag,
        *others,
        cls=TrustedOption,
        type=OutputFile(),
        default=default,
        show_default=True,
        metavar="FILE",
        help=text,
    )


def export_options(command: Any) -> Any:
    """Add ``--export-json`` and the like, one for each of :data:`EXPORTS`, each with a file."""
    for form in reversed(EXPORTS):
        text = f"Write the comparison as {_FORMS.get(form, form.upper())}."
        command = file_option(f"--export-{form}", text)(command)
    return command


def export(comparison: Comparison, options: Mapping[str, Any]) -> None:
    """Write ``comparison`` to the requested files."""
    for form in EXPORTS:
        file = options[f"export_{form}"]
        if file is not None:
            write_file(file, text_of(comparison, form).encode())
            print_message(f"wrote {file}")


def text_of(comparison: Comparison, form: str) -> str:
    """Return ``comparison`` in one of :data:`EXPORTS`."""
    from trainmark.report.csv_text import to_csv
    from trainmark.report.markdown import to_markdown
    from trainmark.report.tables import tables_of

    if form == "json":
        return f"{as_json(comparison.data)}\n"
    if form == "svg":
        return terminal_picture(tables_of(comparison))
    written = to_markdown if form == "markdown" else to_csv
    return written(tables_of(comparison))


def terminal_picture(tables: Iterable[Table]) -> str:
    """Return an SVG of the terminal after this command has printed ``tables``."""
    from trainmark.report.terminal_picture import picture

    return picture(list(tables), _typed(sys.argv[1:]))


def _typed(words: list[str]) -> str:
    """Return the command line without ``--export-svg FILE``, which is not about the tables.

    Secrets in it are masked.
    """
    own = words[: words.index("--")] if "--" in words else words
    shown = []
    rest = iter(own)
    for word in rest:
        if word == "--export-svg":
            next(rest, None)
        elif not word.startswith("--export-svg="):
            shown.append(word)
    return mask_command_line(["trainmark", *shown, *words[len(own) :]])


legend_option: Callable[[Any], Any] = click.option(
    "--legend", is_flag=True, help="Explain the columns of the table."
)


def without_trials(records: list[Record]) -> list[Record]:
    """Return ``records`` without trials of a sweep, unless there are only trials.

    Prints how many it omits.
    """
    from trainmark.analysis import sweep

    kept = sweep.without_trials(records)
    if not kept or len(kept) == len(records):
        return records
    trials = many(len(records) - len(kept), "trial")
    print_message(f"ignored {trials} of a sweep; `trainmark report` shows them")
    return kept


def print_message(text: str) -> None:
    """Print a message on stderr, with control sequences in names escaped and secrets masked."""
    given = Secrets.of(sys.argv[1:], os.environ)
    click.echo(f"trainmark: {printable(given.mask(text))}", err=True)


def terminal_observer(*, quiet: bool = False) -> TerminalObserver:
    """Return a study's progress on stderr. It is imported on use, since importing rich is slow."""
    from trainmark.terminal.observer import TerminalObserver

    return TerminalObserver(quiet=quiet)


def write_file(path: Path, content: bytes) -> None:
    """Write to a path that the user chose; raises :class:`~trainmark.errors.OutputError`."""
    try:
        regular.write(path, content)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _unwritable(path: Path, found: str) -> OutputError:
    return OutputError(
        f"can't write {path}",
        expected="a file in an existing, writable folder, or a device or pipe that can be written",
        found=found,
        fix="Choose another file.",
    )


def show(data: Any, tables: Iterable[Table], *, as_json: bool, legend: bool = False) -> None:
    """Print ``data`` as JSON, or draw its tables, with the ``legend`` of their columns."""
    if as_json:
        print_json(data)
    else:
        draw_all(console(), tables, legend=legend)


def print_json(value: Any) -> None:
    """Print plain JSON, never coloured, with non-finite numbers as strings."""
    print_file(f"{as_json(value)}\n")


def as_json(value: Any) -> str:
    """Return ``value`` as JSON text, with non-finite numbers as strings."""
    from trainmark.record.codec import to_plain

    text = json.dumps(to_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_file(text: str) -> None:
    """Print text that may go to a file, such as CSV, in UTF-8 whatever the terminal's encoding."""
    click.echo(text.encode(errors="replace"), nl=False)
