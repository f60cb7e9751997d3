"""Draws of seed 1337, against files that PyTorch wrote and against PyTorch itself."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trainmark.errors import SpecError
from trainmark.record.weights import load
from trainmark.workload.catalog import find
from trainmark.workload.initializers import Constant, Normal, Uniform
from trainmark.workload.layers import (
    Attention,
    Dense,
    Dropout,
    Layer,
    LayerNorm,
    PositionEmbedding,
    ReLU,
    Residual,
    TokenEmbedding,
)
from trainmark.workload.model import lay_out
from trainmark.workload.pytorch_draws import Drawn, Generator, draw

TRAIN = 1_003_854 - 64
TEST = 111_540 - 64


@pytest.fixture(scope="module")
def published() -> Path:
    """The folder with what nanoGPT drew."""
    folder = Path(os.environ.get("TRAINMARK_DATA", "nowhere"), "shakespeare")
    if not (folder / "windows_seed1337.npz").is_file():
        pytest.skip("TRAINMARK_DATA names no folder with shakespeare/windows_seed1337.npz")
    return folder


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    workload = find("shakespeare-gpt")
    assert workload.published is not None
    workload = workload.scheduled_as(workload.published.runs[0])
    found = draw(workload, lay_out(workload), TRAIN, TEST)
    assert found is not None
    return found


def test_initial_weights_of_nanogpt(published: Path, drawn: Drawn) -> None:
    written = load(published / "initial_weights_seed1337.safetensors")
    for number in range(4):
        block = {
            f"attention{number + 1}.qkv": "attn.c_attn",
            f"attention{number + 1}.out": "attn.c_proj",
            f"dense{2 * number + 1}.kernel": "mlp.c_fc",
            f"dense{2 * number + 2}.kernel": "mlp.c_proj",
        }
        for ours, theirs in block.items():
            assert np.array_equal(drawn.weights[ours], written[f"h.{number}.{theirs}.weight"].T), (
                ours
            )
    assert np.array_equal(drawn.weights["token-embedding1.table"], written["wte.weight"])
    assert np.array_equal(drawn.weights["position-embedding1.table"], written["wpe.weight"])
    assert all((drawn.weights[f"layer-norm{number}.scale"] == 1).all() for number in range(1, 10))
    assert drawn.weights.keys() == lay_out(find("shakespeare-gpt")).weights.keys()


def test_windows_of_nanogpt(published: Path, drawn: Drawn) -> None:
    with np.load(published / "windows_seed1337.npz") as windows:
        assert np.array_equal(drawn.batches, windows["train"])
        for index in range(9):
            assert np.array_equal(
                drawn.sample("train", index), windows["evaluation"][index, 0].ravel()
            )
            assert np.array_equal(
                drawn.sample("test", index), windows["evaluation"][index, 1].ravel()
            )


def test_without_a_seed_nothing_is_drawn() -> None:
    workload = find("shakespeare-gpt")
    assert draw(workload, lay_out(workload), TRAIN, TEST) is None


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_numbers_of_pytorch(seed: int) -> None:
    torch = pytest.importorskip("torch")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("without AVX2 PyTorch computes other logarithms")
    torch.manual_seed(seed)
    generator = Generator(seed)
    for count in (16, 100_000, 17, 31):  # the last of them end in numbers that are drawn anew
        assert np.array_equal(
            generator.normal(count, 0.02), torch.empty(count).normal_(0, 0.02).numpy()
        )
        assert np.array_equal(generator.below(1_003_790, 5), torch.randint(1_003_790, (5,)).numpy())


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": {"shuffle": "every-epoch"}},
        {"batches": {"last": "keep"}},
        {"metrics": {"sample": None}},
        {"metrics": {"before": False}},
    ],
    ids=str,
)
def test_only_what_nanogpt_draws_can_be_drawn(changes: dict[str, dict[str, object]]) -> None:
    changed = {
        name: replace(getattr(find("shakespeare-gpt"), name), **values)
        for name, values in changes.items()
    }
    workload = replace(find("shakespeare-gpt"), **changed)
    with pytest.raises(
        SpecError, match=r"schedule\.pytorch_seed: expected a GPT of normal matrices"
    ):
        workload.with_schedule(pytorch_seed=1)


@pytest.mark.parametrize(
    "layer",
    [
        Dense(128, bias="none"),
        Dense(128, kernel=Normal(0.02)),
        TokenEmbedding(65, 128, Uniform(0.1)),
        PositionEmbedding(64, Constant()),
        Attention(4, qkv=Uniform(0.1)),
        Attention(4, out=Uniform(0.1)),
        Attention(4, dropout=0.1),
        Dropout(0.1),
        LayerNorm(),
        ReLU(),
    ],
    ids=str,
)
def test_only_layers_of_nanogpt_can_be_drawn(layer: Layer) -> None:
    workload = find("shakespeare-gpt")
    workload = replace(workload, model=(*workload.model, Residual((layer,))))
    with pytest.raises(SpecError, match="without bias, shift and dropout"):
        workload.with_schedule(pytorch_seed=1)


def test_seeds_have_32_bits() -> None:
    with pytest.raises(
        SpecError, match="pytorch_seed: expected a whole number from 0 to 4,294,967,295"
    ):
        find("shakespeare-gpt").with_schedule(pytorch_seed=1 << 32)
