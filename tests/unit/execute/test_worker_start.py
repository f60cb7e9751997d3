"""What a measured process does before it is ready to train."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

import pytest

from trainmark.backends import registry
from trainmark.backends.base import Options
from trainmark.errors import DataUnavailable, NotInstalled
from trainmark.execute.protocol.worker_commands import Train
from trainmark.execute.worker.main import train
from trainmark.workload.catalog import find

PATIENCE_SECONDS = 60
"""How long a test takes if it fails; if it passes, it only waits for an event."""


class MissingData:
    """A dataset that waits until the framework is being imported, and then can't be read."""

    def __init__(self) -> None:
        self.framework_loads = threading.Event()
        self.was_read = threading.Event()

    def load(self) -> Any:
        assert self.framework_loads.wait(PATIENCE_SECONDS), (
            "the framework must not wait for the data"
        )
        self.was_read.set()
        raise DataUnavailable("the data is missing")


def _train(data: MissingData) -> None:
    options = Options("idiomatic", "cpu", "fp32", seed=1)
    request = Train(
        "numpy", find("mnist-mlp32"), data, options, 0.0, False, None, None, None, (None,)
    )  # type: ignore[arg-type]
    train(request, lambda _: None, lambda: None, time.perf_counter, queue.SimpleQueue())


def test_data_is_read_while_the_framework_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    data = MissingData()

    def load(_: str) -> object:
        data.framework_loads.set()
        assert data.was_read.wait(PATIENCE_SECONDS), "the data must not wait for the framework"
        return object()

    monkeypatch.setattr(registry, "load", load)
    with pytest.raises(DataUnavailable, match="the data is missing"):
        _train(data)


def test_a_framework_that_fails_is_reported_first(monkeypatch: pytest.MonkeyPatch) -> None:
    data = MissingData()

    def load(_: str) -> object:
        data.framework_loads.set()
        raise NotInstalled("there is no framework", fix="Install it.")

    monkeypatch.setattr(registry, "load", load)
    with pytest.raises(NotInstalled, match="there is no framework"):
        _train(data)
    assert data.was_read.is_set()  # no thread is left behind
