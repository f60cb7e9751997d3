"""Predict the test set: the worker's side of ``trainmark predict``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainmark.backends import registry
from trainmark.backends.base import Options
from trainmark.data.load import load as load_dataset
from trainmark.execute.wire import Message
from trainmark.record import weights as weight_files
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

_BATCH = 1000
"""Examples in a batch, as in evaluation: another size may round differently."""


def predict(request: Message, say: Callable[[Message], None]) -> None:
    """Evaluate the weights of ``request`` and send the last layer's outputs in batches."""
    workload = Workload.from_data(request["workload"])
    model = lay_out(workload)
    data = load_dataset(request["dataset"]["name"], Path(request["dataset"]["directory"]))
    path = Path(request["weights"])
    weights = weight_files.load(path)
    weight_files.require_fit(weights, model, path)
    trainer = registry.load(request["backend"]).trainer(workload, model, data, Options.from_data(request["options"]))
    trainer.load(weights)
    test = trainer.evaluate("test")
    say({"event": "evaluated", "loss": test.loss, "accuracy": test.accuracy, "labels": data.test.labels.tolist()})
    for start in range(0, len(data.test), _BATCH):
        say({"event": "outputs", "values": trainer.outputs(data.test.images[start : start + _BATCH]).tolist()})
    say({"event": "done"})
