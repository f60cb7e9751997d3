"""``trainmark predict``: predict the test set or continue a text, with the weights of a record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from trainmark import regular
from trainmark.cli import options as shared
from trainmark.cli.output import (
    file_option,
    json_option,
    print_json,
    print_message,
    terminal_observer,
    write_file,
)
from trainmark.errors import UsageError
from trainmark.execute.parent.bounds import MOST_SEED
from trainmark.report.console import console, draw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trainmark.analysis.predictions import Predictions
    from trainmark.study.predict import TrainedModel
    from trainmark.terminal.observer import TerminalObserver

EPILOG = """\b
Examples:
  trainmark run mnist-mlp128 --save-weights --repeats 1
  trainmark predict trainmark-results/RECORD.json
  trainmark predict RECORD.json --index 8          one digit, with its probabilities
  trainmark predict RECORD.json --grid grid.png    right and wrong examples
  trainmark predict RECORD.json -o all.csv         all probabilities; also .parquet
  trainmark predict RECORD.json --prompt "ROMEO:" --top 5 --attention 1:1
"""


@click.command("predict", epilog=EPILOG)
@click.argument("path", metavar="RECORD", type=shared.PATH)
@file_option("--output", "Write all probabilities: .csv or .parquet.", "-o")
@file_option("--grid", "Draw right and wrong examples (.png, .svg), or --attention (.png).")
@click.option(
    "--index", type=click.IntRange(0), metavar="N", help="Show one test example, counted from 0."
)
@click.option("--prompt", metavar="TEXT", help="Text to continue.  [default: a newline]")
@shared.count_option("--length", "Characters to generate.  [default: 200]")
@shared.number_option(
    "--temperature", "0: the likeliest character.  [default: 1]", click.FloatRange(0), metavar="T"
)
@shared.count_option("--seed", "Seed for sampling.  [default: 1]", least=0, most=MOST_SEED)
@shared.count_option("--top", "Show the N likeliest characters after the prompt.")
@click.option(
    "--attention",
    metavar="LAYER:HEAD",
    help="Show a head's attention weights over the prompt, such as 1:1.",
)
@shared.python_option
@shared.timeout_option
@shared.data_dir_option
@json_option
def command(path: Path, **options: Any) -> None:
    """Predict the test set or continue a text, with a record's backend and weights.

    The record must come from a run with --save-weights.
    """
    from trainmark.data.catalog import find
    from trainmark.data.load import load
    from trainmark.record.store import read
    from trainmark.study import predict

    output = options["output"]
    grid = options["grid"]
    index = options["index"]
    _require_endings(output, grid)
    if not regular.is_file(path):
        raise UsageError(
            f"no record at {path}", expected="a record's file", found=regular.found_at(path)
        )
    record = read(path)
    progress = terminal_observer()
    with progress.preparing() as preparation:
        model = predict.prepare(record, path, shared.request_of(options), preparation)
    of_text = {name: options[name] for name in _OF_TEXT if options[name] is not None}
    if model.chosen.scheduled.workload.is_text:
        _continue(model, progress, _OF_TEXT | of_text, options)
        return
    source = click.get_current_context().get_parameter_source
    typed = [name for name in of_text if source(name) is ParameterSource.COMMANDLINE]
    if typed:
        raise UsageError(
            f"--{typed[0]} is only for text", found=f"a record of {record.workload.name}"
        )
    dataset = model.chosen.scheduled.dataset
    if index is not None and index >= dataset.test_examples:
        expected = f"an index from 0 to {dataset.test_examples - 1:,}"
        raise UsageError(f"there is no test example {index:,}", expected=expected)
    with progress.working(f"{record.id}: predicting with {model.chosen.side.title}") as on_progress:
        found = predict.predict(model, on_progress)
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
        print_message(f"wrote {file}")
    if options["as_json"]:
        print_json(_data(model, found, names, index))
    else:
        _show(model, found, names, index, images)


_OF_TEXT = {
    "prompt": "\n",
    "length": 200,
    "temperature": 1.0,
    "seed": 1,
    "top": None,
    "attention": None,
}
"""Options for text workloads, with their defaults."""


def _continue(
    model: TrainedModel, progress: TerminalObserver, asked: dict[str, Any], options: dict[str, Any]
) -> None:
    """Continue a text, and show the requested results; ``asked`` has the options for texts."""
    from trainmark.report.continuation import attention_image, attention_lines, next_table
    from trainmark.report.png import png
    from trainmark.study import generate

    for name in ("output", "index"):
        if options[name] is not None:
            raise UsageError(
                f"--{name} is only for images", found=f"a record of {model.record.workload.name}"
            )
    picture: Path | None = options["grid"]
    if picture is not None and (asked["attention"] is None or picture.suffix != ".png"):
        raise UsageError(
            "for text, --grid needs --attention", expected="--attention LAYER:HEAD --grid FILE.png"
        )
    prompt = asked["prompt"]
    shares = None
    if asked["attention"] is not None:
        shares = generate.attention(model, prompt, *_layer_and_head(asked["attention"]))
    with progress.working(
        f"{model.record.id}: generating with {model.chosen.side.title}"
    ) as on_progress:
        found = generate.generate(
            model, prompt, asked["length"], asked["temperature"], asked["seed"], on_progress
        )
    order = found.probabilities.argsort(kind="stable")[::-1]
    likeliest = [
        (found.characters[each], float(found.probabilities[each])) for each in order[: asked["top"]]
    ]
    if picture is not None and shares is not None:
        write_file(picture, png(attention_image(shares)))
        print_message(f"wrote {picture}")
    if options["as_json"]:
        data = {
            "temperature": asked["temperature"],
            "seed": asked["seed"],
            "attention": asked["attention"],
            "record": model.record.id,
            "prompt": prompt,
            "text": found.text,
            "notes": model.notes,
            "next": [{"character": each, "probability": share} for each, share in likeliest],
            "attention_shares": None if shares is None else shares.tolist(),
        }
        print_json(data)
        return
    screen = console()
    screen.print(f"{prompt}{found.text}", markup=False, highlight=False, soft_wrap=True)
    if asked["top"] is not None:
        draw(screen, next_table(likeliest, prompt))
    if shares is not None:
        for line in attention_lines(shares, prompt):
            screen.print(line, markup=False, highlight=False, no_wrap=True)


def _layer_and_head(text: str) -> tuple[int, int]:
    layer, _, head = text.partition(":")
    if not (layer.isdecimal() and head.isdecimal() and len(text) < 10):
        raise UsageError(
            f"--attention {text!r} can't be read",
            expected="LAYER:HEAD, counted from 1, such as 1:1",
        )
    return int(layer), int(head)


def _require_endings(output: Path | None, grid: Path | None) -> None:
    """Check that the output files can be written, before anything is computed."""
    from trainmark.report.extras import require_extras

    for file, endings in ((output, (".csv", ".parquet")), (grid, (".png", ".svg"))):
        if file is not None and file.suffix not in endings:
            raise UsageError(
                f"{file} can't be written", expected=f"a name that ends in {' or '.join(endings)}"
            )
    if output is not None and output.suffix == ".parquet":
        require_extras("frame")
    if grid is not None and grid.suffix == ".png":
        require_extras("report")


def _data(
    model: TrainedModel, found: Predictions, names: tuple[str, ...], index: int | None
) -> dict[str, Any]:
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
    model: TrainedModel,
    found: Predictions,
    names: tuple[str, ...],
    index: int | None,
    images: NDArray[np.uint8],
) -> None:
    from trainmark.report.predictions_table import confusion_table, probabilities_table
    from trainmark.report.terminal_image import draw_image

    screen = console()
    if index is None:
        side = model.chosen.side.title
        draw(screen, confusion_table(found, names, side, model.record, model.notes))
        return
    draw_image(screen, images[index])
    screen.print()
    draw(screen, probabilities_table(found, names, index))
