"""What an item is made of. Items and measurements know nothing of limits, files and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gpu.session import Session
from gpu.store import Result

Row = dict[str, Any]
"""One line of a table, as JSON."""


@dataclass(frozen=True)
class Outcome:
    """The result of a measurement.

    Args:
        rows: what was measured.
        problems: what failed or did not fit; empty if it is complete.
    """

    rows: list[Row]
    problems: Sequence[str] = ()


class Measurement(Protocol):
    """One thing to measure, whose result is written as soon as it ends.

    Attributes:
        name: unique within its item, fit for a file name.
        seconds: the most it may take.
    """

    @property
    def name(self) -> str: ...

    @property
    def seconds(self) -> float: ...

    def measure(self, session: Session, seconds: float) -> Outcome:
        """Measure within this many seconds; continues what an earlier call left."""


class Item(Protocol):
    """One question of the agenda.

    Attributes:
        name: as the command line takes it.
        number: in the agenda.
        question: the title of its section.
        limit: seconds in which it fits on a GPU.
        how: how it is measured, for the page; continues a sentence about its command.
    """

    @property
    def name(self) -> str: ...

    @property
    def number(self) -> str: ...

    @property
    def question(self) -> str: ...

    @property
    def limit(self) -> float: ...

    @property
    def how(self) -> str: ...

    def measurements(self) -> Sequence[Measurement]:
        """List the measurements, the most important one first."""

    def tables(self, results: Mapping[str, Result]) -> str:
        """Write the tables in Markdown; empty if the results have no rows."""
