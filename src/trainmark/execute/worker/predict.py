"""Predict the test set: the worker's side of ``trainmark predict``."""

from __future__ import annotations

from pathlib import Path

from trainmark.backends import registry
from trainmark.execute.protocol.answers import Outputs, Scored
from trainmark.execute.protocol.requests import Predict
from trainmark.execute.protocol.wire import Say
from trainmark.record import weights as weight_files
from trainmark.workload.model import lay_out

_BATCH = 1000
"""Batch size of evaluation, since other sizes may round differently."""


def predict(request: Predict, say: Say) -> None:
    """Evaluate the weights of ``request`` and send the last layer's outputs in batches."""
    model, data, path = lay_out(request.workload), request.dataset.load(), Path(request.weights)
    weights = weight_files.load(path)
    weight_files.require_fit(weights, model, path)
    trainer = registry.load(request.backend).trainer(request.workload, model, data, request.options)
    trainer.load(weights)
    test = trainer.evaluate("test")
    say(Scored(test.loss, test.accuracy, data.test.labels.tolist()))
    for start in range(0, len(data.test), _BATCH):
        say(Outputs(trainer.outputs(data.test.images[start : start + _BATCH]).tolist()))
