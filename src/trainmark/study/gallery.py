"""Make a gallery for each workload of a report, from the weights next to its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from trainmark import regular, units
from trainmark.data.catalog import find
from trainmark.data.load import load
from trainmark.data.locate import locate
from trainmark.errors import DamagedData, TrainmarkError, UsageError
from trainmark.execute.request import Request
from trainmark.record.record import Record
from trainmark.report.gallery import Gallery, picture
from trainmark.study import predict

_TIMEOUT_SECONDS = 120.0


def galleries(
    records: Sequence[Record],
    files: Mapping[str, Path],
    asked: Request,
    cache: Path,
    told: Callable[[str], None] = lambda _: None,
) -> Iterator[Gallery]:
    """For each workload with saved weights, show the most accurate network.

    The built-in backend predicts, so no framework is needed. A gallery that can't be made says why.

    Args:
        files: of the records by their ids; weights are next to them.
        asked: where the data are.
        told: called with the id of the next record.

    Raises:
        UsageError, DamagedData: a named data folder can't be used.
    """
    best: dict[tuple[str, str], tuple[float, Record, str]] = {}
    for record in records:
        accuracy, work = record.final.test_accuracy, (record.workload.name, record.workload.step_fingerprint)
        path = files.get(record.id)
        if accuracy is None or record.dataset is None or path is None:
            continue
        if regular.is_file(path.with_suffix(".safetensors")) and (work not in best or accuracy > best[work][0]):
            best[work] = accuracy, record, record.dataset.name
    for accuracy, record, dataset in best.values():
        told(record.id)
        title = f"{record.workload.name}, {record.backend.name} {record.backend.style} on {record.device.id}"
        try:
            # A report never downloads data.
            locate(dataset, named=asked.data_dir, environment=asked.environment, cache=cache, download=False)
            subject = predict.prepare(record, files[record.id], asked, cache, by_reference=True)
            found = predict.predict(subject, timeout=_TIMEOUT_SECONDS)
            images = load(subject.data.name, subject.data.directory).test.images
        except TrainmarkError as error:
            if asked.data_dir is not None and isinstance(error, (UsageError, DamagedData)):
                raise  # a named folder is used, or the command fails
            yield Gallery(title, f"Could not predict the test set: {error}")
            continue
        note = (
            f"Record {record.id}: with its weights the built-in backend recognises {units.percent(found.accuracy)} of "
            f"{len(images):,} test examples; the record says {units.percent(accuracy)}."
        )
        names = find(subject.data.name).class_names(found.classes)
        note += "".join(f" {each[0].upper()}{each[1:]}." for each in subject.notes)
        yield Gallery(title, note, picture(found, images, names))
