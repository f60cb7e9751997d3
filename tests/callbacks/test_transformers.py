"""The callback in a real ``Trainer`` of Transformers, on a tiny model made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.callbacks.listening import events, needs, said

pytestmark = needs("transformers", "accelerate")

FIT = """
import os, warnings
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from trainmark.callbacks.transformers import Epochs

torch.manual_seed(0)
config = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                    max_position_embeddings=8, num_labels=2, hidden_dropout_prob=0.0)
words = torch.randint(0, 32, (64, 8))
data = [{"input_ids": row, "labels": int(row[0] > 15)} for row in words]
arguments = TrainingArguments("out", num_train_epochs=3, per_device_train_batch_size=8, learning_rate=1e-2,
                              logging_strategy="epoch", eval_strategy=EVALUATION, save_strategy="no", report_to=[],
                              disable_tqdm=True, use_cpu=True)
def accuracy(predicted):
    return {"accuracy": float((predicted.predictions.argmax(1) == predicted.label_ids).mean())}
Trainer(BertForSequenceClassification(config), arguments, train_dataset=data, eval_dataset=data,
        compute_metrics=accuracy, callbacks=[Epochs()]).train()
"""


def test_every_epoch_and_its_evaluation_are_told(tmp_path: Path) -> None:
    lines = said(FIT.replace("EVALUATION", '"epoch"'), tmp_path)
    assert events(lines) == ["hello", *["begin", "epoch", "test"] * 3]
    epochs = [line for line in lines if line["event"] == "epoch"]
    tests = [line for line in lines if line["event"] == "test"]
    assert [(each["steps"], each["examples"]) for each in epochs] == [(8, 64)] * 3
    assert epochs[-1]["loss"] < epochs[0]["loss"]
    assert tests[-1]["loss"] < tests[0]["loss"]
    assert all(0 < each["accuracy"] <= 1 for each in tests)
    assert "transformers" in epochs[0]["packages"]


@pytest.mark.slow
def test_an_evaluation_in_the_middle_of_an_epoch_is_part_of_it(tmp_path: Path) -> None:
    """Also one behind the last step, before the trainer calls the epoch ended."""
    lines = said(FIT.replace("EVALUATION", '"steps", eval_steps=4'), tmp_path)
    assert events(lines) == ["hello", *["begin", "epoch"] * 3]
    assert all(line["examples"] == 64 for line in lines if line["event"] == "epoch")


@pytest.mark.slow
def test_without_evaluation_there_is_no_test(tmp_path: Path) -> None:
    assert events(said(FIT.replace("EVALUATION", '"no"'), tmp_path)) == ["hello", *["begin", "epoch"] * 3]
