"""The loader that tells how long training waits for it, around a real ``DataLoader``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.callbacks.listening import said
from tests.slow import slow

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

SLOW = """
import time
import torch
from torch.utils.data import DataLoader, Dataset
from trainmark import hook
from trainmark.callbacks.torch import Waiting

class Slow(Dataset):
    def __len__(self): return 12
    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.zeros(3)

loader = Waiting(DataLoader(Slow(), batch_size=4, num_workers=WORKERS))
assert len(loader) == 3 and loader.batch_size == 4
for _ in range(2):
    assert sum(len(x) for x in loader) == 12
    hook.epoch(examples=12)
"""


@pytest.mark.parametrize("workers", [slow(0), 1])
def test_the_wait_is_told(tmp_path: Path, workers: int) -> None:
    lines = said(SLOW.replace("WORKERS", str(workers)), tmp_path)
    waits = [line["data_wait_seconds"] for line in lines if line["event"] == "epoch"]
    assert len(waits) == 2
    assert all(wait >= 0.1 for wait in waits)


def test_when_nobody_listens_it_is_the_loader() -> None:
    from torch.utils.data import DataLoader

    from trainmark.callbacks.torch import Waiting

    loader = Waiting(DataLoader(list(range(5)), batch_size=2))
    assert [len(batch) for batch in loader] == [2, 2, 1]
