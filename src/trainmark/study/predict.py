"""Let a backend predict the test set with the weights of a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmark import regular
from trainmark.analysis.predictions import Predictions, probabilities
from trainmark.backends.base import Options
from trainmark.data.locate import Located
from trainmark.errors import PredictionFailed, UsageError
from trainmark.execute.parent import request as requests
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.process import converse
from trainmark.execute.parent.request import Request, Watcher
from trainmark.execute.protocol.answers import Answer, Outputs, Scored
from trainmark.execute.protocol.requests import Predict
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


def prepare(record: Record, path: Path, asked: Request, watcher: Watcher | None = None) -> Subject:
    """Find the weights of ``record``, its backend and its data.

    Args:
        path: of the record; its weights are next to it.
        asked: where the data are, and which interpreters there are.

    Raises:
        UsageError, DataError: no weights, or no backend, device or data to use them with.
    """
    request = again.request_of(record, asked)
    weights = _weights(record, path)
    selection = requests.select(request, watcher)
    ((workload, (side, *_)),) = selection.able
    data, settings = requests.locate_one(request, workload, watcher), request.settings
    device = selection.by_side[side.backend, side.interpreter.label].device(side.device)
    notes = again.unlike(record, data.sha256, side.version, device.name if device else None)
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
    side, outputs = subject.side, list[list[float]]()
    scored: Scored | None = None

    def hear(answer: Answer) -> None:
        nonlocal scored
        match answer:
            case Scored():
                scored = answer
            case Outputs():
                outputs.extend(answer.values)
        tell("predicting", len(outputs) / (subject.data.test_examples or 1))

    request = Predict(side.backend, subject.workload, subject.data.folder, subject.options, str(subject.weights))
    threads = subject.options.threads
    ending = converse(side.interpreter.path, lambda _: request, hear=hear, threads=threads, timeout=timeout)
    if ending.status != "done" or scored is None:
        raise PredictionFailed(
            f"{side.title} can't predict with {subject.weights.name}", found=ending.reason or "no answer"
        )
    logarithms = isinstance(subject.workload.loss, NegativeLogLikelihood)
    shares = probabilities(np.array(outputs, np.float64), logarithms=logarithms)
    return Predictions(shares, np.array(scored.labels, np.int64), scored.loss, scored.accuracy)
