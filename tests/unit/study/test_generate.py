"""Texts continued, and the attention of a head, with the NumPy backend's worker in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trainmark.backends.base import Options
from trainmark.data.dataset import Dataset, Split
from trainmark.errors import UsageError
from trainmark.execute.parent.process import Ending
from trainmark.execute.worker import predict as worker
from trainmark.record import weights as weight_files
from trainmark.study import generate
from trainmark.workload import catalog
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.size import Size

WORKLOAD = Size(width=8, depth=2, length=6).of(catalog.find("shakespeare-gpt"))


@dataclass
class Worker:
    """A side whose worker is called directly."""

    side = SimpleNamespace(backend="numpy", title="numpy")
    scheduled = SimpleNamespace(
        workload=WORKLOAD, dataset=SimpleNamespace(name="shakespeare", folder=None)
    )

    def options(self) -> Any:
        return Options("idiomatic", "cpu", "fp32", seed=1)

    def ask(self, request: Any, on_answer: Callable[[Any], None]) -> tuple[list[Any], Ending]:
        text = Split.of_text(np.zeros(20, np.uint8))
        data = Dataset("shakespeare", text, text, "", complete=True).windows(6)
        request = SimpleNamespace(
            **{**vars(request), "dataset": SimpleNamespace(load=lambda: data)}
        )
        worker.generate(request, on_answer)
        return [], Ending("done", None, "")


@pytest.fixture
def model(tmp_path: Path) -> Any:
    path = tmp_path / "w.safetensors"
    weight_files.save(initial_weights(lay_out(WORKLOAD), 1), path)
    return SimpleNamespace(chosen=Worker(), weights=path, record=None)


def test_a_text_continues_beyond_the_window_and_repeats_by_seed(model: Any) -> None:
    first, again = (generate.generate(model, "ROMEO: ", 9, 1.0, 3) for _ in range(2))
    assert len(first.text) == 9 and first.text == again.text
    assert first.probabilities.sum() == pytest.approx(1)
    assert generate.generate(model, "ROMEO: ", 9, 1.0, 4).text != first.text


def test_a_temperature_of_0_takes_the_likeliest(model: Any) -> None:
    found = generate.generate(model, "ab", 1, 0.0, 3)
    assert found.text == found.characters[found.probabilities.argmax()]
    assert generate.generate(model, "ab", 1, 1e-300, 3).text == found.text


def test_attention_is_causal_and_adds_up(model: Any) -> None:
    shares = generate.attention(model, "ROMEO: hark", 2, 1)
    assert shares.shape == (6, 6)
    assert np.allclose(shares.sum(axis=1), 1) and not np.triu(shares, 1).any()


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (3, 1), (1, 9)])
def test_a_head_that_is_not_there_is_refused(model: Any, layer: int, head: int) -> None:
    with pytest.raises(UsageError):
        generate.attention(model, "ROMEO", layer, head)


@pytest.mark.parametrize(("prompt", "found"), [("caf\u00e9", "\u00e9"), ("", "''")])
def test_an_unknown_character_is_named(model: Any, prompt: str, found: str) -> None:
    with pytest.raises(UsageError) as refused:
        generate.generate(model, prompt, 1, 1.0, 1)
    assert found in str(refused.value.found)
