"""``trainmark predict``: predict the test set with the weights of a record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark import regular
from trainmark.cli.main import OK
from trainmark.cli.options import FILE, PATH, data_dir_option, python_option, request_of, timeout_option
from trainmark.cli.output import json_option, print_json, say, write_file
from trainmark.errors import UsageError
from trainmark.report.terminal import console

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trainmark.analysis.predictions import Predictions
    from trainmark.study.predict import TrainedModel

EPILOG = """\b
Examples:
  trainmark run mnist-mlp128 --save-weights --repeats 1
  trainmark predict trainmark-results/RECORD.json
  trainmark predict RECORD.json --index 8          one digit, with its probabilities
  trainmark predict RECORD.json --grid grid.png    right and wrong examples
  trainmark predict RECORD.json -o all.csv         all probabilities; also .parquet
"""


@click.command("predict", epilog=EPILOG)
@click.argument("path", metavar="RECORD", type=PATH)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write all probabilities: .csv or .parquet.")
@click.option("--grid", type=FILE, metavar="FILE", help="Draw right and wrong examples: .png or .svg.")
@click.option("--index", type=click.IntRange(0), metavar="N", help="Show one test example, counted from 0.")
@python_option
@timeout_option
@data_dir_option
@json_option
def command(path: Path, output: Path | None, grid: Path | None, index: int | None, **options: Any) -> int:
    """Predict the test set with a record's backend and weights.

    The record must come from a run with --save-weights.
    """
    from trainmark.data.catalog import find
    from trainmark.data.load import load
    from trainmark.progress.terminal import TerminalProgress
    from trainmark.record.store import read
    from trainmark.study import predict

    _require_endings(output, grid)
    if not regular.is_file(path):
        raise UsageError(f"no record at {path}", expected="a record's file", found=regular.found_at(path))
    record, progress = read(path), TerminalProgress()
    with progress.preparing() as watcher:
        model = predict.prepare(record, path, request_of(options), watcher)
    dataset = model.chosen.course.dataset
    if index is not None and index >= dataset.test_examples:
        expected = f"an index from 0 to {dataset.test_examples - 1:,}"
        raise UsageError(f"there is no test example {index:,}", expected=expected)
    with progress.working(f"{record.id}: predicting with {model.chosen.side.title}") as tell:
        found = predict.predict(model, tell)
    images = load(dataset.name, dataset.directory).test.images
    names = find(dataset.name).class_names(found.classes)
    if output is not None:
        from trainmark.report.predictions_file import predictions_file

        write_file(output, predictions_file(found, output.suffix))
    if grid is not None:
        from trainmark.report.files import svg_to_png
        from trainmark.report.gallery import picture

        title = f"{record.workload.name}, {record.backend.name} {record.backend.style}"
        svg = picture(found, images, names, title)
        write_file(grid, svg_to_png(svg) if grid.suffix == ".png" else svg.encode())
    for file in filter(None, (output, grid)):
        say(f"wrote {file}")
    if options["as_json"]:
        print_json(_data(model, found, names, index))
    else:
        _show(model, found, names, index, images)
    return OK


def _require_endings(output: Path | None, grid: Path | None) -> None:
    """Check that the output files can be written, before anything is computed."""
    from trainmark.report.extras import require_extras

    for file, endings in ((output, (".csv", ".parquet")), (grid, (".png", ".svg"))):
        if file is not None and file.suffix not in endings:
            raise UsageError(f"{file} can't be written", expected=f"a name that ends in {' or '.join(endings)}")
    if output is not None and output.suffix == ".parquet":
        require_extras("frame")
    if grid is not None and grid.suffix == ".png":
        require_extras("report")


def _data(model: TrainedModel, found: Predictions, names: tuple[str, ...], index: int | None) -> dict[str, Any]:
    from trainmark.analysis.predictions import confusion

    recorded = model.record.final.test_accuracy
    data: dict[str, Any] = {
        "record": model.record.id,
        "examples": len(found.labels),
        "loss": found.loss,
        "accuracy": found.accuracy,
        "recorded_accuracy": recorded,
        "reproduced": recorded == found.accuracy,
        "classes": names,
        "confusion": confusion(found).tolist(),
        "notes": model.notes,
    }
    if index is not None:
        data["example"] = {
            "index": index,
            "label": int(found.labels[index]),
            "predicted": int(found.predicted[index]),
            "probabilities": found.probabilities[index].tolist(),
        }
    return data


def _show(
    model: TrainedModel, found: Predictions, names: tuple[str, ...], index: int | None, images: NDArray[np.uint8]
) -> None:
    from trainmark.report.predictions_table import confusion_table, probabilities_table
    from trainmark.report.terminal import draw
    from trainmark.report.terminal_image import draw_image

    screen = console()
    if index is None:
        draw(screen, confusion_table(found, names, model.chosen.side.title, model.record, model.notes))
        return
    draw_image(screen, images[index])
    screen.print()
    draw(screen, probabilities_table(found, names, index))
