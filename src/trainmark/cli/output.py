"""Messages and JSON: with ``--json``, stdout holds only JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import Console, ConsoleOptions

    from trainmark.record.record import Record
    from trainmark.record.store import Store

json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print only JSON on stdout.")


def console(*, to_stderr: bool = False) -> Console:
    """A terminal to draw on, as wide as the terminal is; piped output is never squeezed."""
    from rich.console import Console, RenderableType
    from rich.segment import Segment

    from trainmark.report.printable import printable

    class Screen(Console):
        """What is drawn on it steers the terminal only where it is rich that does."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    made = Screen(stderr=to_stderr, soft_wrap=False, highlight=False)
    if not made.is_terminal:
        made.width = 200
    return made


def comparable(records: list[Record]) -> list[Record]:
    """The comparable ``records``: without trials of a sweep, unless there are only trials. Says what it leaves out."""
    from trainmark.analysis.sweep import without_trials
    from trainmark.units import many

    kept = without_trials(records)
    if not kept or len(kept) == len(records):
        return records
    left_out = many(len(records) - len(kept), "trial")
    say(f"left out {left_out} of a sweep; `trainmark report` shows them")
    return kept


def made_before(store: Store) -> list[Record]:
    """The records of this machine, from which ``--resume`` continues. Says how many others it leaves out."""
    from trainmark.measure.machine import made_here
    from trainmark.units import many

    kept: list[Record] = []
    others: list[Record] = []
    for record in store.read_all():
        (kept if made_here(record.machine) else others).append(record)
    if others:
        names = ", ".join(sorted({record.machine.name for record in others}))
        say(f"--resume continues only runs of this machine; left out {many(len(others), 'record')} of {names}")
    return kept


def say(text: str) -> None:
    """Print a message on stderr, with control sequences in names made harmless."""
    from trainmark.report.printable import printable

    click.echo(f"trainmark: {printable(text)}", err=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; raises :class:`~trainmark.errors.OutputError`."""
    from trainmark.errors import OutputError
    from trainmark.regular import write_atomically

    try:
        write_atomically(path, content)
    except OSError as error:
        raise OutputError(
            f"can't write {path}",
            expected="an existing, writable folder",
            found=error.strerror or str(error),
            fix="Give another file with -o.",
        ) from error


def print_json(value: Any) -> None:
    """Plain JSON, never coloured, non-finite numbers as strings."""
    from trainmark.record.codec import to_plain
    from trainmark.report.printable import STEERING

    text = json.dumps(to_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    print_file(STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def print_file(text: str) -> None:
    """What may be read as a file, such as CSV: UTF-8 whatever the terminal speaks, so that no letter is lost."""
    click.echo(text.encode(errors="replace"), nl=False)
