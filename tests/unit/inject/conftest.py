"""Changes to a PyTorch training, for the time of a test."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.inject.notes import Notes
from trainmark.inject import changes as all_changes
from trainmark.inject import patch
from trainmark.inject.changes import lines


@pytest.fixture
def apply(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Notes]]:
    """Apply changes for the time of a test."""
    torch = pytest.importorskip("torch")
    from trainmark.inject.changes import torch as changes

    optimizers = sys.modules[torch.optim.Optimizer.__module__]

    def applied(names: str) -> Notes:
        notes = Notes(request.path)
        monkeypatch.setenv(all_changes.VARIABLE, names)
        monkeypatch.setattr(patch, "put", monkeypatch.setattr)
        all_changes.apply(notes, changes)
        return notes

    def thread(**options: Any) -> threading.Thread:
        samplers.append(threading.Thread(**options))
        return samplers[-1]

    ended = threading.Event()
    samplers = list[threading.Thread]()
    monkeypatch.setattr(
        lines, "pauses", lambda: iter(lambda: 1.0 if ended.is_set() else 0.0005, 1.0)
    )
    monkeypatch.setattr(
        lines, "threading", SimpleNamespace(get_ident=threading.get_ident, Thread=thread)
    )
    threads = torch.get_num_threads()
    set_threads = torch.set_num_threads
    interval = sys.getswitchinterval()
    hooks = optimizers._global_optimizer_post_hooks
    known = list(hooks)
    yield applied
    ended.set()
    for each in samplers:  # it switches the garbage collector, which another test looks at
        each.join()
    sys.setswitchinterval(interval)
    set_threads(threads)  # the real one: an experiment ignores what the script sets
    torch.set_default_dtype(torch.float32)
    for key in set(hooks) - set(known):
        del hooks[key]
