"""The callback in a real ``Trainer`` of Lightning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.callbacks.listening import events, needs, said

pytestmark = needs("lightning")

FIT = """
import logging, warnings
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset
from trainmark.callbacks.lightning import Epochs

class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 2)
    def training_step(self, batch, _):
        loss, accuracy = self.figures(batch)
        self.log("train_loss", loss, on_epoch=True)
        self.log("train_acc", accuracy, on_epoch=True, on_step=False)
        return loss
    def validation_step(self, batch, _):
        loss, accuracy = self.figures(batch)
        self.log("val_loss", loss)
        self.log("val_acc", accuracy)
    def figures(self, batch):
        x, y = batch
        out = self.net(x)
        return torch.nn.functional.cross_entropy(out, y), (out.argmax(1) == y).float().mean()
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.05)

torch.manual_seed(0)
x = torch.randn(320, 8)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), 32)
trainer = pl.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False, callbacks=[Epochs()])
trainer.fit(Module(), loader, VALIDATION)
"""


def test_every_epoch_and_its_validation_are_told(tmp_path: Path) -> None:
    lines = said(FIT.replace("VALIDATION", "loader"), tmp_path)
    assert events(lines) == ["hello", *["begin", "epoch", "test"] * 3]
    epochs = [line for line in lines if line["event"] == "epoch"]
    tests = [line for line in lines if line["event"] == "test"]
    assert [each["steps"] for each in epochs] == [10] * 3
    assert tests[-1]["loss"] < tests[0]["loss"]
    assert all(0 < each["accuracy"] <= 1 for each in (*epochs, *tests))
    assert len({each["loss"] for each in epochs}) == 3, "each its own mean"
    assert all(epoch["t"] < test["t"] for epoch, test in zip(epochs, tests, strict=True))
    assert "lightning" in epochs[0]["packages"]


@pytest.mark.slow
def test_without_validation_there_is_no_test(tmp_path: Path) -> None:
    lines = said(FIT.replace(", VALIDATION", ""), tmp_path)
    assert events(lines) == ["hello", *["begin", "epoch"] * 3]
    epochs = [line for line in lines if line["event"] == "epoch"]
    assert epochs[-1]["loss"] < epochs[0]["loss"]
    assert all(0 < each["accuracy"] <= 1 for each in epochs)
