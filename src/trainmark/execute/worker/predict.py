"""Predict the test set or continue a text: the worker's side of ``trainmark predict``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainmark.backends import registry
from trainmark.backends.base import Trainer
from trainmark.data.dataset import Dataset
from trainmark.execute.protocol.answers import Continued, Outputs, Scored
from trainmark.execute.protocol.wire import Send
from trainmark.execute.protocol.worker_commands import Generate, Predict
from trainmark.record import weights as weight_files
from trainmark.workload.losses import probabilities
from trainmark.workload.model import lay_out


def predict(request: Predict, send: Send) -> None:
    """Evaluate the weights of ``request`` and send the last layer's outputs in batches."""
    data = request.dataset.load()
    trainer = _trained(request, data)
    test = trainer.evaluate("test")
    send(Scored(test.loss, test.accuracy, data.test.labels.tolist()))
    # The batches are as large as in evaluation, since other sizes may round differently.
    size = request.workload.evaluation_batch
    for start in range(0, len(data.test), size):
        send(Outputs(trainer.outputs(data.test.images[start : start + size]).tolist()))


def generate(request: Generate, send: Send) -> None:
    """Continue the prompt token by token.

    The network sees the last tokens, up to its context length.
    """
    trainer = _trained(request, request.dataset.load())
    tokens = list(request.prompt)
    rng = np.random.default_rng(request.seed)
    length = request.workload.input.network_shape[0]
    for index in range(request.length):
        seen = tokens[-length:]
        # Attention is causal, so the zeros after the tokens change nothing.
        window = np.array([seen + [0] * (length - len(seen))])
        row = trainer.outputs(window)[:, len(seen) - 1]
        if request.temperature:
            shares = probabilities((row - row.max()) / request.temperature)[0]
            token = min(int(np.searchsorted(shares.cumsum(), rng.random())), len(shares) - 1)
        else:
            token = int(row.argmax())
        plain = None if index else probabilities(row)[0].tolist()
        send(Continued(token, plain))
        tokens.append(token)


def _trained(request: Predict | Generate, data: Dataset) -> Trainer:
    """Return a trainer with the request's weights."""
    model = lay_out(request.workload)
    trainer = registry.load(request.backend).trainer(request.workload, model, data, request.options)
    trainer.load(weight_files.load_for(model, Path(request.weights)))
    return trainer
