"""Let a backend predict the test set with the weights of a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmark import regular
from trainmark.analysis.predictions import Predictions, probabilities
from trainmark.backends.base import Options
from trainmark.data.locate import Located
from trainmark.data.progress import Progress, silent
from trainmark.errors import PredictionFailed, UsageError
from trainmark.execute import request as requests
from trainmark.execute.child import converse
from trainmark.execute.plan import Side
from trainmark.execute.request import Request
from trainmark.execute.wire import Message
from trainmark.record.record import Record
from trainmark.record.weights import average_of
from trainmark.study import again
from trainmark.workload.losses import NegativeLogLikelihood
from trainmark.workload.spec import Workload


@dataclass(frozen=True)
class Subject:
    """A record with its weights, and the backend that predicts with them.

    Args:
        weights: the file that evaluation uses; that of the averaged weights where the workload keeps an average.
        notes: what differs from when the record was made, in sentences.
    """

    record: Record
    workload: Workload
    side: Side
    options: Options
    data: Located
    weights: Path
    notes: tuple[str, ...]


def prepare(
    record: Record, path: Path, asked: Request, cache: Path, progress: Progress = silent, *, by_reference: bool = False
) -> Subject:
    """Find the weights of ``record``, its backend and its data.

    Args:
        path: of the record; its weights are next to it.
        asked: where the data are, and which interpreters there are.
        by_reference: use the built-in backend, whichever trained; its accuracy may differ in a few examples.

    Raises:
        UsageError, DataError: no weights, or no backend, device or data to use them with.
    """
    request = again.request_of(record, asked)
    if by_reference:
        request = dataclasses.replace(
            request,
            backends=("numpy",),
            styles=("idiomatic",),
            devices=("cpu",),
            precision="fp32",
            settings=dataclasses.replace(request.settings, threads=None, memory_fraction=None),
        )
    weights = _weights(record, path)
    selection = requests.select(request)
    ((workload, (side, *_)),) = selection.able
    located, _ = requests.locate_all(request, [workload], cache, progress)
    data, settings = located[workload.dataset], request.settings
    device = selection.by_side[side.backend, side.interpreter.label].device(side.device)
    notes = again.unlike(record, data.sha256, side.version, device.name if device else None)
    if by_reference:
        notes = (again.OTHER_DATA,) if again.OTHER_DATA in notes else ()
    options = side.options(settings.seed, settings.threads, settings.memory_fraction)
    return Subject(record, workload, side, options, data, weights, notes)


def _weights(record: Record, path: Path) -> Path:
    """The weights that evaluation of ``record`` used; raises UsageError where there are none next to ``path``."""
    weights = path.with_suffix(".safetensors")
    if regular.is_file(weights) and Workload.from_data(record.workload.spec).weight_average:
        weights = average_of(weights)
    if not regular.is_file(weights):
        raise UsageError(
            f"there are no weights next to {path.name}",
            expected=weights.name,
            fix="Train with --save-weights, and keep the files next to the record.",
        )
    return weights


def predict(
    subject: Subject, tell: Callable[[str, float], None] = lambda *_: None, timeout: float | None = None
) -> Predictions:
    """Let the backend compute its outputs for the whole test set.

    Args:
        tell: called with what is being done, and the share that is done, from 0 to 1.

    Raises:
        PredictionFailed: its process died or took too long, or the weights don't fit.
    """
    side, outputs, heard = subject.side, list[list[float]](), dict[str, Message]()

    def on_message(message: Message) -> None:
        heard[message["event"]] = message
        if message["event"] == "outputs":
            outputs.extend(message["values"])
        tell("predicting", len(outputs) / (subject.data.test_examples or 1))

    request = {
        "event": "predict",
        "backend": side.backend,
        "workload": dataclasses.replace(subject.workload, published=None).to_data(),
        "dataset": {"name": subject.data.name, "directory": str(subject.data.directory)},
        "options": subject.options.to_data(),
        "weights": str(subject.weights),
    }
    ending = converse(
        side.interpreter.path, lambda _: request, hear=on_message, threads=subject.options.threads, timeout=timeout
    )
    if ending.status != "done":
        reason = heard["failed"]["reason"] if "failed" in heard else ending.reason
        raise PredictionFailed(f"{side.title} can't predict with {subject.weights.name}", found=reason or "no answer")
    evaluated = heard["evaluated"]
    return Predictions(
        probabilities(
            np.array(outputs, np.float64), logarithms=isinstance(subject.workload.loss, NegativeLogLikelihood)
        ),
        np.array(evaluated["labels"], np.int64),
        evaluated["loss"],
        evaluated["accuracy"],
    )
