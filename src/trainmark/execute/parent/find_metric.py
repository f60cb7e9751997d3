"""Finds the figure that the user names in what a command has logged, printed or reported."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from trainmark.execute.parent.metric_series import MetricSeries
from trainmark.execute.parent.printed_metric import PrintedMetric
from trainmark.execute.protocol.answers import MetricLogged
from trainmark.record.named_metric import MetricSource, NamedMetric, WantedMetric
from trainmark.record.record import Epoch

_REPORTED = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")
"""What the hook reports, by the names of a record."""
_MOST_NAMES = 20
"""Most other names in a record."""


class MetricFinder:
    """Collects what may be the figure in one run.

    Args:
        wanted: the figure.
    """

    def __init__(self, wanted: WantedMetric) -> None:
        self._wanted = wanted
        self._printed = PrintedMetric(wanted)
        self._logged: dict[str, MetricSeries] = {}
        self._others: dict[str, None] = {}

    def on_output(self, printed: bytes) -> None:
        """Take the next bytes that the command has printed."""
        self._printed.feed(printed)

    def on_logged(self, answer: MetricLogged) -> None:
        """Take the next values that were logged."""
        self._others |= dict.fromkeys(answer.others)
        if not answer.tag:
            return
        series = self._logged.setdefault(answer.tag, MetricSeries(self._wanted))
        series.add_thinned(answer.values, answer.count)
        for at, value in answer.extremes:
            series.take_best(value, at)

    def found(self, epochs: Sequence[Epoch], *, is_final: bool) -> NamedMetric:
        """Return what was found of the figure.

        What was logged comes first, since it has all digits; then what was printed.

        Args:
            epochs: the epochs that were reported.
            is_final: whether the training ran to its end, or to ``--steps``.
        """
        self._printed.close()
        lacking = NamedMetric(self._wanted.name, self._wanted.better, is_final=is_final)
        reported = self._reported(epochs)
        sources: tuple[tuple[MetricSource, dict[str, MetricSeries]], ...] = (
            ("logged", self._of_name(self._logged)),
            ("printed", self._printed.matches),
            ("reported", self._of_name(reported)),
        )
        for source, matches in sources:
            if len(matches) == 1:
                ((name, series),) = matches.items()
                return _filled(lacking, source, name, series)
        for _, matches in sources:
            if matches:
                return structs.replace(lacking, candidates=list(matches))
        others = dict.fromkeys([*self._others, *self._printed.others(), *reported])
        return structs.replace(
            lacking,
            others=list(others)[:_MOST_NAMES],
            not_numbers=self._printed.not_numbers,
        )

    def _of_name(self, series: dict[str, MetricSeries]) -> dict[str, MetricSeries]:
        """Return the series of exactly this name, or else of the same in other letters."""
        name = self._wanted.name
        if name in series:
            return {name: series[name]}
        folded = name.casefold()
        return {each: found for each, found in series.items() if each.casefold() == folded}

    def _reported(self, epochs: Sequence[Epoch]) -> dict[str, MetricSeries]:
        """Return the figures of the epochs, as far as they are known."""
        found: dict[str, MetricSeries] = {}
        for name in _REPORTED:
            for epoch in epochs:
                value = getattr(epoch, name)
                if value is not None:
                    series = found.setdefault(name, MetricSeries(self._wanted))
                    series.add(value, epoch.index + 1, "epoch")
        return found


def _filled(
    lacking: NamedMetric, source: MetricSource, name: str, series: MetricSeries
) -> NamedMetric:
    alike = ("count", "values", "at", "counted_in", "last", "best", "best_at")
    return structs.replace(
        lacking,
        source=source,
        found_as=name,
        is_percentage=series.percentages == series.count,
        **{each: getattr(series, each) for each in alike},
    )
