"""What a trained network says of the test set: what the measured process does for ``predict``."""

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
"""Examples at a time, as backends evaluate: another size may round otherwise."""


def predict(request: Message, say: Callable[[Message], None]) -> None:
    """Evaluate the weights of ``request`` and tell the last layer's outputs, so many examples at a time.

    The weights are those that evaluation takes, the averaged ones where the workload keeps an average.
    """
    workload = Workload.from_data(request["workload"])
    model = lay_out(workload)
    data = load_dataset(request["dataset"]["name"], Path(request["dataset"]["directory"]))
    path = Path(request["weights"])
    weights = weight_files.load(path)
    weight_files.require_fit(weights, model, path)
    trainer = registry.load(request["backend"]).trainer(workload, model, data, Options(**request["options"]))
    trainer.load(weights)
    test = trainer.evaluate("test")
    say({"event": "evaluated", "loss": test.loss, "accuracy": test.accuracy, "labels": data.test.labels.tolist()})
    for start in range(0, len(data.test), _BATCH):
        say({"event": "outputs", "values": trainer.outputs(data.test.images[start : start + _BATCH]).tolist()})
    say({"event": "done"})
