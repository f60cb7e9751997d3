"""What trained networks see: pictures for a report, wherever weights stand beside a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from trainmark import regular, units
from trainmark.data.catalog import find
from trainmark.data.load import load
from trainmark.data.locate import locate
from trainmark.errors import DamagedData, TrainmarkError, UsageError
from trainmark.execute.request import Request
from trainmark.record.record import Record
from trainmark.report.gallery import Gallery, examples
from trainmark.study import predict

_TIMEOUT_SECONDS = 120.0


def galleries(
    records: Sequence[Record],
    files: Mapping[str, Path],
    asked: Request,
    cache: Path,
    told: Callable[[str], None] = lambda _: None,
) -> list[Gallery]:
    """One for each workload of which a record has weights: that of the most accurate.

    The built-in backend computes, so that no framework is needed. One that can't be made says why.

    Args:
        files: of the records by their ids; weights stand beside them.
        asked: where the data lie.
        told: which record is being asked.
    """
    found = []
    for record, dataset in _best(records, files):
        told(record.id)
        found.append(_gallery(record, dataset, files[record.id], asked, cache))
    return found


def _best(records: Iterable[Record], files: Mapping[str, Path]) -> list[tuple[Record, str]]:
    """With the names of their data."""
    best: dict[tuple[str, str], tuple[Record, str]] = {}
    for record in records:
        accuracy, work = record.final.test_accuracy, (record.workload.name, record.workload.step_fingerprint)
        if (
            accuracy is None
            or record.dataset is None
            or record.id not in files
            or not regular.is_file(files[record.id].with_suffix(".safetensors"))
        ):
            continue
        if work not in best or accuracy > (best[work][0].final.test_accuracy or 0.0):
            best[work] = record, record.dataset.name
    return list(best.values())


def _gallery(record: Record, dataset: str, path: Path, asked: Request, cache: Path) -> Gallery:
    title = f"{record.workload.name}, {record.backend.name} {record.backend.style} on {record.device.id}"
    try:
        # A report asks no mirror for anything; what is not at hand is not drawn.
        locate(dataset, named=asked.data_dir, environment=asked.environment, cache=cache, download=False)
        subject = predict.prepare(record, path, asked, cache, by_reference=True)
        found = predict.predict(subject, timeout=_TIMEOUT_SECONDS)
        test = load(subject.data.name, subject.data.directory).test
    except TrainmarkError as error:
        if asked.data_dir is not None and isinstance(error, (UsageError, DamagedData)):
            raise  # a folder that was named is never fallen past
        return Gallery(title, f"What it sees can't be drawn: {error}")
    right, wrong = examples(found, test.images)
    accuracy, recorded = units.percent(found.accuracy), units.percent(record.final.test_accuracy)
    note = (
        f"Of record {record.id}: the built-in backend recognises {accuracy} of {len(test):,} test examples with its "
        f"weights, {recorded} are recorded. Mistaken ones: those of which the network was surest."
        + "".join(f" {each[0].upper()}{each[1:]}." for each in subject.notes)
    )
    return Gallery(title, note, tuple(right), tuple(wrong), find(subject.data.name).class_names(found.classes))
