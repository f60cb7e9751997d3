"""Steps of the reference for ``trainmark parity``, on a few small images."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.unit.backends.samples import a_dataset, a_text, options
from trainmark.execute.protocol.wire import Send
from trainmark.execute.protocol.worker_commands import ComputeReference
from trainmark.execute.worker.parity_reference import compute_reference
from trainmark.workload.spec import Workload

DATA: Any = SimpleNamespace(load=lambda: a_dataset(train=100))
"""Replaces a folder."""
TEXT_LENGTH = 12
TEXT: Any = SimpleNamespace(load=lambda: a_text(train=300, test=60, length=TEXT_LENGTH))


def data_of(workload: Workload) -> Any:
    """The data that it trains on."""
    return TEXT if workload.is_text else DATA


def reference_steps(
    workload: Workload, folder: Path, precision: str = "fp32", send: Send = lambda _: None
) -> Path:
    """The file of the steps."""
    place = folder / "steps.npz"
    compute_reference(
        ComputeReference(
            "numpy", workload, data_of(workload), options(precision=precision), str(place)
        ),
        send,
    )
    return place
