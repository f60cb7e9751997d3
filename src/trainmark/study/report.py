"""The page about records: what ``trainmark report`` and ``Compared.report`` write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainmark.analysis.agreement import agree, trainings
from trainmark.analysis.results import Comparison
from trainmark.analysis.sweep import without_trials
from trainmark.data.cache import cache_dir
from trainmark.errors import RecordError
from trainmark.record.record import Record
from trainmark.report.explained import Explained
from trainmark.report.page import page


def report(
    records: Sequence[Record],
    comparison: Comparison,
    explained: Sequence[Explained] = (),
    *,
    title: str,
    made_with: str = "trainmark",
    warn: Callable[[str], None],
) -> bytes:
    """Return the page as HTML.

    Args:
        comparison: of the ``records`` without trials of a sweep.
        made_with: shown in the last line.
        warn: called with a sentence about what the page lacks.
    """
    try:
        every = agree(trainings(without_trials(records)))
        published = [result for result in every if result.key is not None]
    # Another trainmark wrote the workload; the rest of the page is still useful.
    except RecordError as error:
        warn(f"published figures are missing from the page: {error}")
        published = []
    text = page(
        records,
        comparison,
        published,
        explained,
        title=title,
        made_with=made_with,
        cache=cache_dir(),
    )
    return text.encode(errors="replace")  # a command line need not be Unicode
