"""The callback in a real ``fit`` of Keras."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.callbacks.listening import events, needs, said

pytestmark = needs("keras")

FIT = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy as np
from trainmark.callbacks.keras import Epochs
rng = np.random.default_rng(0)
x = rng.normal(size=(320, 8)).astype("float32")
y = (x.sum(axis=1) > 0).astype("int32")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, verbose=0, callbacks=[Epochs(examples=len(x))], VALIDATION)
"""


def test_every_epoch_and_its_validation_are_told(tmp_path: Path) -> None:
    lines = said(FIT.replace("VALIDATION", "validation_data=(x, y)"), tmp_path)
    assert events(lines) == ["hello", *["begin", "epoch", "test"] * 3]
    epochs = [line for line in lines if line["event"] == "epoch"]
    tests = [line for line in lines if line["event"] == "test"]
    assert [(each["examples"], each["steps"]) for each in epochs] == [(320, 10)] * 3
    assert epochs[-1]["loss"] < epochs[0]["loss"]
    assert all(0 < each["accuracy"] <= 1 for each in (*epochs, *tests))
    assert "keras" in epochs[0]["packages"]


@pytest.mark.slow
def test_without_validation_there_is_no_test(tmp_path: Path) -> None:
    lines = said(FIT.replace(", VALIDATION", ""), tmp_path)
    assert events(lines) == ["hello", *["begin", "epoch"] * 3]
    assert all("loss" in line for line in lines if line["event"] == "epoch")
