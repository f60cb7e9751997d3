"""What the trained network of a record says of the test set, computed by the backend that trained it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmark import regular
from trainmark.analysis.predictions import Predictions, probabilities
from trainmark.data.locate import Located
from trainmark.data.progress import Progress, silent
from trainmark.errors import PredictionFailed, UsageError
from trainmark.execute import request as requests
from trainmark.execute.child import converse
from trainmark.execute.plan import Settings, Side
from trainmark.execute.request import Request
from trainmark.execute.wire import Message
from trainmark.record.record import Record
from trainmark.record.weights import average_of
from trainmark.study import again
from trainmark.workload.losses import NegativeLogLikelihood
from trainmark.workload.spec import Workload

Tell = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done, from 0 to 1."""


@dataclass(frozen=True)
class Subject:
    """What is asked: a record with its weights, and who can compute with them.

    Args:
        weights: that evaluation takes.
        notes: what is not as it was when the record was made, in sentences.
    """

    record: Record
    workload: Workload
    side: Side
    settings: Settings
    data: Located
    weights: Path
    notes: tuple[str, ...]


def prepare(
    record: Record, path: Path, asked: Request, cache: Path, progress: Progress = silent, *, by_reference: bool = False
) -> Subject:
    """Find the weights of ``record``, its backend and its data.

    Args:
        path: of the record; its weights stand beside it.
        asked: where the data lie, and which interpreters there are.
        by_reference: let the built-in backend compute, whichever trained; its accuracy may differ in a few examples.

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
    workload = Workload.from_data(record.workload.spec)
    weights = path.with_suffix(".safetensors")
    if not regular.is_file(weights):
        raise UsageError(
            f"there are no weights beside {path.name}",
            expected=weights.name,
            fix="Train with --save-weights, and keep the file beside the record.",
        )
    if workload.weight_average:
        weights = average_of(weights)
        if not regular.is_file(weights):
            raise UsageError(
                f"{record.workload.name} is tested with averaged weights, and those of {path.name} were not saved",
                expected=weights.name,
                fix="Train again with --save-weights.",
            )
    selection = requests.select(request)
    ((workload, able),) = selection.able
    located, _ = requests.locate_all(request, [workload], cache, progress)
    side = able[0]
    device = selection.by_side[side.backend, side.interpreter.label].device(side.device)
    data = located[workload.dataset]
    notes = again.unlike(record, data.sha256, side.version, device.name if device else None)
    if by_reference:
        notes = (
            ()
            if record.dataset and data.sha256 == record.dataset.sha256
            else ("the data here are not those of the record",)
        )
    return Subject(record, workload, side, request.settings, data, weights, notes)


def predict(subject: Subject, tell: Tell = lambda *_: None, timeout: float | None = None) -> Predictions:
    """Ask the backend for its outputs on the whole test set.

    Raises:
        PredictionFailed: its process died, took too long, or the weights don't fit.
    """
    side, heard = subject.side, list[Message]()

    def hear(message: Message) -> None:
        heard.append(message)
        done = sum(len(each["values"]) for each in heard if each["event"] == "outputs")
        tell("asking the network", done / (subject.data.test_examples or 1))

    ending = converse(
        side.interpreter.path, lambda _: _request(subject), hear=hear, threads=subject.settings.threads, timeout=timeout
    )
    if ending.status != "done":
        reason = next((message["reason"] for message in heard if message["event"] == "failed"), ending.reason)
        raise PredictionFailed(f"{side.title} can't predict with {subject.weights.name}", found=reason or "no answer")
    evaluated = next(message for message in heard if message["event"] == "evaluated")
    outputs = np.array([row for each in heard if each["event"] == "outputs" for row in each["values"]], np.float64)
    return Predictions(
        probabilities(outputs, logarithms=isinstance(subject.workload.loss, NegativeLogLikelihood)),
        np.array(evaluated["labels"], np.int64),
        evaluated["loss"],
        evaluated["accuracy"],
    )


def _request(subject: Subject) -> Message:
    side, settings = subject.side, subject.settings
    return {
        "event": "predict",
        "backend": side.backend,
        "workload": dataclasses.replace(subject.workload, published=None).to_data(),
        "dataset": {"name": subject.data.name, "directory": str(subject.data.directory)},
        "options": {
            "style": side.style,
            "device": side.device,
            "precision": side.precision,
            "seed": settings.seed,
            "threads": settings.threads,
            "memory_fraction": settings.memory_fraction,
        },
        "weights": str(subject.weights),
    }
