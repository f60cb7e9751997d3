"""The Python API, for notebooks and scripts: run, load and compare.

Results display as tables in a notebook.

``trainmark.run``, ``trainmark.load_records`` and ``trainmark.compare`` are imported on first use.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from msgspec import structs

from trainmark import regular, units
from trainmark.analysis import comparison as comparisons
from trainmark.analysis.reference import read_baseline
from trainmark.analysis.results import Comparison
from trainmark.analysis.sweep import without_trials
from trainmark.errors import UsageError
from trainmark.record import store
from trainmark.record.facts import Dimension
from trainmark.record.record import Record
from trainmark.report.flat import flat_group
from trainmark.report.frame import frame
from trainmark.report.html_text import to_html
from trainmark.report.runs_table import runs_table
from trainmark.report.tables import comparison_markdown, tables_of

if TYPE_CHECKING:
    from trainmark.study.options import RunOptions


@dataclass(frozen=True, repr=False)
class Records(Sequence[Record]):
    """A sequence of records. A notebook shows them as a table with one row per record.

    Args:
        records: the records; oldest first if trainmark loaded or measured them.
    """

    records: tuple[Record, ...]

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> Records: ...
    def __getitem__(self, place: int | slice) -> Record | Records:
        return Records(self.records[place]) if isinstance(place, slice) else self.records[place]

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"<{units.many(len(self), 'trainmark record')}>"

    def _repr_html_(self) -> str:
        return to_html([runs_table(self.records)])

    def to_frame(self, library: str | None = None) -> Any:
        """Convert the runs to a data frame.

        Args:
            library: ``pandas`` or ``polars``; if not given, the first of them that is installed.

        Returns:
            A data frame with one row per run; times are in seconds, shares and accuracies are
            fractions from 0 to 1.

        Raises:
            UnknownName: ``library`` is neither.
            NotInstalled: the library is not installed.
        """
        return frame((row.data for row in runs_table(self.records).rows), library)

    def epochs(self, library: str | None = None) -> Any:
        """Convert the epochs of all runs to a data frame.

        Args:
            library: ``pandas`` or ``polars``; if not given, the first of them that is installed.

        Returns:
            A data frame with one row per epoch of each run; times are in seconds, accuracies are
            fractions from 0 to 1.

        Raises:
            UnknownName: ``library`` is neither.
            NotInstalled: the library is not installed.
        """
        rows = []
        for run in self.records:
            rows += [{"record": run.id, **structs.asdict(epoch)} for epoch in run.epochs]
        return frame(rows, library)

    def compare(
        self, by: Dimension | None = None, baseline: str | None = None, margin: float = 3.0
    ) -> Compared:
        """Compare these records, as ``trainmark.compare`` does.

        Args:
            by: compare only along this dimension: ``device``, ``backend``, ``style``, ``machine``
                or ``python``.
            baseline: the reference, such as ``device=cpu``; if not given, the side measured first.
            margin: speed differences up to this count as the same, in percent.

        Returns:
            The comparison.

        Raises:
            UsageError: as for ``trainmark.compare``.
        """
        return compare(self, by, baseline, margin)


@dataclass(frozen=True, repr=False)
class Compared:
    """A comparison with its records. A notebook shows its tables.

    Args:
        records: the records that were compared.
        comparison: groups of records, their speed-ups and verdicts.
    """

    records: Records
    comparison: Comparison

    def __repr__(self) -> str:
        return comparison_markdown(self.comparison)

    def _repr_html_(self) -> str:
        return to_html(tables_of(self.comparison))

    def to_frame(self, library: str | None = None) -> Any:
        """Convert the groups to a data frame.

        Args:
            library: ``pandas`` or ``polars``; if not given, the first of them that is installed.

        Returns:
            A data frame with one row per group; times are in seconds, shares and accuracies are
            fractions from 0 to 1.

        Raises:
            UnknownName: ``library`` is neither.
            NotInstalled: the library is not installed.
        """
        groups = self.comparison.groups
        return frame(
            (flat_group(group, position) for position, group in enumerate(groups)), library
        )

    def chart(self, name: str = "speedup") -> Any:
        """Draw a chart.

        Args:
            name: one of the names in ``trainmark compare --help``.

        Returns:
            An Altair chart, which a notebook displays.

        Raises:
            UnknownName: there is no chart ``name``.
            UsageError: the records lack the data that the chart shows.
            NotInstalled: the ``report`` extra is not installed.
        """
        from trainmark.report.chart_data import chart_data
        from trainmark.report.files import chosen, together

        return together(chosen(chart_data(self.comparison), [name]))

    def save_chart(self, path: str | os.PathLike[str], name: str = "speedup") -> Path:
        """Write a chart to a file.

        Args:
            path: the file to write; its name ends in ``.svg`` or ``.png``.
            name: one of the names in ``trainmark compare --help``.

        Returns:
            The path of the file.

        Raises:
            UnknownName: there is no chart ``name``.
            UsageError: the file name has another ending, or the records lack the data that the
                chart shows.
            NotInstalled: the ``report`` extra is not installed.
            OSError: the file can't be written.
        """
        from trainmark.report.chart_data import chart_data
        from trainmark.report.files import drawn

        regular.write(Path(path), drawn(Path(path), chart_data(self.comparison), [name]))
        return Path(path)

    def report(
        self, path: str | os.PathLike[str] = "report.html", title: str = "Training compared"
    ) -> Path:
        """Write an HTML page about these records; a warning says what the page lacks, if anything.

        Args:
            path: the file to write.
            title: title of the page.

        Returns:
            The path of the file.

        Raises:
            NotInstalled: the ``report`` extra is not installed.
            OSError: the file can't be written.
        """
        from trainmark.report.extras import require_extras
        from trainmark.study.report import report

        require_extras("report")
        compared = without_trials(self.records)
        comparison = self.comparison
        if len(compared) < len(self.records):
            comparison = comparisons.compare(
                compared, comparison.by, comparison.baseline, comparison.margin
            )
        regular.write(Path(path), report(self.records, comparison, title=title, warn=warnings.warn))
        return Path(path)


def load_records(*paths: str | os.PathLike[str]) -> Records:
    """Load the records in files and folders, oldest first, without duplicates.

    Args:
        paths: files and folders of records.

    Returns:
        The records.

    Raises:
        UsageError: a path does not exist, or a folder has no records or can't be read.
        RecordError: a file can't be read, is not a record, or was written by a newer trainmark.
    """
    return Records(tuple(store.load([Path(path) for path in paths])))


def compare(
    records: Iterable[Record] | str | os.PathLike[str],
    by: Dimension | None = None,
    baseline: str | None = None,
    margin: float = 3.0,
) -> Compared:
    """Group records and compare each group with its reference, as ``trainmark compare`` does.

    Args:
        records: records, or the path of a folder with records.
        by: compare only along this dimension: ``device``, ``backend``, ``style``, ``machine`` or
            ``python``.
        baseline: the reference, such as ``device=cpu``; if not given, the side measured first.
        margin: speed differences up to this count as the same, in percent.

    Returns:
        The comparison.

    Raises:
        UsageError: there are no records, ``by`` or ``baseline`` is wrong, or ``margin`` is
            negative.
        RecordError: ``records`` is a path, and a file there can't be used as a record.
    """
    if isinstance(records, (str, os.PathLike)):
        records = load_records(records)
    every = records if isinstance(records, Records) else Records(tuple(records))
    if not every:
        raise UsageError(
            "there is nothing to compare", expected="at least one record", found="none"
        )
    return Compared(every, comparisons.compare(every, by, read_baseline(baseline), margin / 100))


def run(
    *workloads: str,
    out: str | os.PathLike[str] = "trainmark-results",
    resume: bool = False,
    budget: float = 90.0,
    margin: float = 3.0,
    labels: Mapping[str, str] | None = None,
    quiet: bool = False,
    **options: Unpack[RunOptions],
) -> Records:
    """Train, record each run, and return the records, as ``trainmark run`` does.

    Each run is a separate process, so this imports no framework.

    Args:
        workloads: names or TOML files; the default benchmark if none is given.
        out: folder for the records; created if it does not exist.
        resume: skip recorded runs of the newest such plan there; ``budget`` then adds no rounds.
        budget: seconds for the whole call, start-up included: rounds are added until the verdict
            is decided, and trainings that would take longer are shortened. The default does not
            shorten what ``repeats``, ``resume`` or ``published`` ask for; 0 never does.
        margin: speed differences up to this count as the same, in percent.
        labels: labels of this machine for its records, such as ``{"instance": "g5.xlarge"}``.
        quiet: don't show progress.
        options: ``backend``, ``style``, ``device``, ``repeats``, ``epochs``, ``steps``, ``seed``
            and all other options of ``trainmark run``, by their long names with ``_`` instead of
            ``-``; ``--python`` and ``--price`` are the lists ``pythons`` and ``prices``.

    Returns:
        The new records and, with ``resume``, the earlier ones.

    Raises:
        UsageError: an option is unknown, wrong or can't be carried out here.
        DataError: a dataset can't be used.
        RecordError: a record can't be written, or, with ``resume``, an earlier one can't be read.
        KeyboardInterrupt: Ctrl-C; finished records are in ``out``.
    """
    from trainmark.study import options as study_options
    from trainmark.study.observer import StudyObserver
    from trainmark.study.rounds import Budget
    from trainmark.study.run import RoundOptions, run
    from trainmark.terminal.observer import TerminalObserver

    study_options.require_known(options)
    names = {name: _several(options.get(name, ())) for name in ("backend", "style", "device")}  # type: ignore[arg-type]
    command = f"trainmark.run({', '.join(map(repr, workloads))})"
    request = study_options.request_of({**options, **names, "workloads": workloads}, command)
    checked = study_options.read_labels(f"{key}={value}" for key, value in (labels or {}).items())
    asks_for_trainings = resume or options.get("repeats") is not None or options.get("published")
    keeps_repeats = bool(asks_for_trainings) and budget == Budget.seconds
    limits = Budget(budget, margin / 100, keeps_repeats)
    rounds = RoundOptions(resume, limits, checked)
    found = run(
        request, store.Store(Path(out)), StudyObserver() if quiet else TerminalObserver(), rounds
    )
    if found.interrupted:
        raise KeyboardInterrupt
    return Records((*found.earlier, *found.records))


def _several(names: str | Iterable[str]) -> tuple[str, ...]:
    """Accept ``"a,b"`` and ``["a", "b"]`` alike."""
    return tuple(names.split(",")) if isinstance(names, str) else tuple(names)
