from __future__ import annotations

from dataclasses import replace

import pytest

from trainmark.data.fit import require_fit
from trainmark.errors import SpecError
from trainmark.workload import catalog
from trainmark.workload.layers import (
    BatchNorm,
    Conv2D,
    Dense,
    Flatten,
    Layer,
    PositionEmbedding,
    TokenEmbedding,
)
from trainmark.workload.schedule import Batches
from trainmark.workload.tokens import Tokens

GPT = catalog.find("shakespeare-gpt")


@pytest.mark.parametrize("name", catalog.names())
def test_every_workload_fits_its_dataset(name: str) -> None:
    require_fit(catalog.find(name))


@pytest.mark.parametrize(
    ("name", "dataset", "problem"),
    [
        (
            "mnist-mlp32",
            "cifar10",
            "expected images of 32 × 32 × 3 in input.shape, found images of 28 × 28 × 1",
        ),
        ("mnist-mlp32", "shakespeare", "expected tokens as input, found images of 28 × 28 × 1"),
        ("shakespeare-gpt", "mnist", "expected images of 28 × 28 × 1 in input.shape, found tokens"),
        (
            "shakespeare-gpt",
            "random-tokens",
            "a row for each of the 50,304 tokens of random-tokens, found 65",
        ),
    ],
)
def test_another_dataset(name: str, dataset: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        require_fit(replace(catalog.find(name), dataset=dataset))


def with_model(*model: Layer, length: int = 64) -> None:
    require_fit(replace(GPT, input=Tokens(length), model=model))


def test_a_window_longer_than_the_text() -> None:
    embedding = TokenEmbedding(65, 2)
    with_model(embedding, Dense(65), length=111_539)
    with pytest.raises(
        SpecError, match=r"at most 111,539 tokens in input.length, .* found 111,540"
    ):
        with_model(embedding, Dense(65), length=111_540)


def test_a_head_narrower_than_the_vocabulary() -> None:
    with_model(TokenEmbedding(65, 8), PositionEmbedding(64), Dense(65))
    with pytest.raises(
        SpecError, match="one value for each of the 65 tokens of shakespeare, found 64"
    ):
        with_model(TokenEmbedding(65, 8), PositionEmbedding(64), Dense(64))


def test_an_embedding_with_too_few_rows() -> None:
    with pytest.raises(
        SpecError, match=r"'token-embedding1' .* the 65 tokens of shakespeare, found 64"
    ):
        with_model(TokenEmbedding(64, 8), Dense(65))


def test_the_window() -> None:
    assert GPT.input.length == 64
    assert catalog.find("mnist-mlp32").input.length is None


def test_batch_norm_of_a_single_value() -> None:
    resnet = catalog.find("cifar10-resnet9")
    whole = replace(
        resnet, model=(Conv2D(10, 32), BatchNorm(), Flatten()), batches=Batches(2, last="drop")
    )
    require_fit(whole)
    with pytest.raises(
        SpecError, match="'batch-norm1' in 'cifar10-resnet9' can't normalise a batch of one"
    ):
        require_fit(replace(whole, batches=Batches(1)))
    with pytest.raises(SpecError, match="can't normalise a batch of one"):
        require_fit(replace(whole, batches=Batches(49_999)))  # the last batch has one example
