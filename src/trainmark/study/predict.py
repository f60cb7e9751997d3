"""Let a backend predict the test set with the weights of a record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmark import regular
from trainmark.analysis.predictions import Predictions
from trainmark.errors import PredictionFailed, UsageError
from trainmark.execute.parent.request import PreparationObserver, RunRequest
from trainmark.execute.protocol.answers import Answer, Outputs, Scored, of_kind
from trainmark.execute.protocol.worker_commands import Predict
from trainmark.record.record import Record
from trainmark.record.weights import average_of
from trainmark.study import rerun
from trainmark.study.chosen import ChosenSide, choose
from trainmark.study.observer import OnProgress, ignore_progress
from trainmark.workload.losses import probabilities


@dataclass(frozen=True)
class TrainedModel:
    """A record with its weights, and the side that predicts with them.

    Args:
        weights: the file that evaluation uses; the averaged weights if the workload keeps an
            average.
        notes: what differs from when the record was made, in sentences.
    """

    record: Record
    chosen: ChosenSide
    weights: Path
    notes: tuple[str, ...]


def prepare(
    record: Record, path: Path, asked: RunRequest, preparation: PreparationObserver | None = None
) -> TrainedModel:
    """Find the weights of ``record``, its backend and its data.

    Args:
        path: of the record; its weights are next to it.
        asked: gives the data folder and the interpreters.

    Raises:
        UsageError, DataError: no weights, or no backend, device or data to use them with.
    """
    request = rerun.request_of(record, asked)
    weights = _weights(record, path)
    chosen = choose(request, preparation)
    return TrainedModel(record, chosen, weights, rerun.unlike(record, chosen))


def _weights(record: Record, path: Path) -> Path:
    """Find the weights next to ``path`` that evaluation of ``record`` used.

    Raises:
        UsageError: there are none.
    """
    weights = path.with_suffix(".safetensors")
    if regular.is_file(weights) and record.workload.workload.weight_average:
        weights = average_of(weights)
    if not regular.is_file(weights):
        raise UsageError(
            f"there are no weights next to {path.name}",
            expected=weights.name,
            fix="Train with --save-weights, and keep the files next to the record.",
        )
    return weights


def predict(model: TrainedModel, on_progress: OnProgress = ignore_progress) -> Predictions:
    """Let the backend compute its outputs for the whole test set.

    Raises:
        PredictionFailed: its process died or took too long, or the weights don't fit.
    """
    chosen = model.chosen
    side = chosen.side
    scheduled = chosen.scheduled
    outputs: list[list[float]] = []

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, Outputs):
            outputs.extend(answer.values)
        on_progress("predicting", len(outputs) / (scheduled.dataset.test_examples or 1))

    request = Predict(
        side.backend,
        scheduled.workload,
        scheduled.dataset.folder,
        chosen.options(),
        str(model.weights),
    )
    received, ending = chosen.ask(request, on_answer=on_answer)
    scored = next(iter(of_kind(received, Scored)), None)
    if ending.status != "done" or scored is None:
        problem = f"{side.title} can't predict with {model.weights.name}"
        raise PredictionFailed(problem, found=ending.reason or "no answer")
    shares = probabilities(np.array(outputs, np.float64))
    return Predictions(shares, np.array(scored.labels, np.int64), scored.loss, scored.accuracy)
