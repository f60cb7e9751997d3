from __future__ import annotations

import numpy as np
import pytest

from trainmark.data import synthetic
from trainmark.data.load import load
from trainmark.data.locate import Located


def test_the_seed_decides() -> None:
    (a, labels_a), (b, labels_b), (c, labels_c) = (
        synthetic.draw(seed, 50, lambda done: None) for seed in (1, 1, 2)
    )
    assert np.array_equal(a, b) and np.array_equal(labels_a, labels_b)
    assert not np.array_equal(a, c) and not np.array_equal(labels_a, labels_c)


def test_progress_reaches_the_end() -> None:
    seen: list[int] = []
    synthetic.draw(1, 250, seen.append)
    assert seen == [100, 200, 250]


def test_the_bytes_are_those_of_every_machine(drawn: Located) -> None:
    # Locating the data compared each file with the catalogue. Records distinguish these digits from
    # those of other generators by this digest; it changes only on purpose.
    assert drawn.sha256 == "44878636e49d55180566c329286cde7a7928a7ddb7b7ab84798433f21d071204"
    assert (drawn.train_examples, drawn.test_examples) == (60_000, 10_000)


def test_it_resembles_mnist_in_numbers(drawn: Located) -> None:
    digits = load("synthetic-digits", drawn.directory)
    images = digits.train.images
    assert images.mean() == pytest.approx(33.3, abs=5)
    assert images.std() == pytest.approx(78.6, abs=14)
    assert np.count_nonzero(images) / images.size == pytest.approx(0.19, abs=0.06)
    assert images.max() == 255
    assert np.bincount(digits.train.labels) == pytest.approx(np.full(10, 6_000), abs=300)
    # No image is empty, none is a blot.
    ink = images.mean(axis=(1, 2, 3))
    assert ink.min() > 2
    assert ink.max() < 110


def test_no_image_comes_twice(drawn: Located) -> None:
    digits = load("synthetic-digits", drawn.directory)
    everything = np.concatenate([digits.train.images, digits.test.images])
    assert len({image.tobytes() for image in everything}) == len(everything)


def test_it_can_be_learned_but_not_by_comparing_means(drawn: Located) -> None:
    # With NumPy and seed 1, mnist-mlp512 reaches 96.8 % after one epoch and 98.05 % after two. The
    # nearest class mean reaches 82 % on MNIST. Data that such a classifier solves, or fails on,
    # would measure nothing.
    digits = load("synthetic-digits", drawn.directory)
    train, test = (
        split.images[:10_000].reshape(-1, 784).astype(np.float32)
        for split in (digits.train, digits.test)
    )
    labels = digits.train.labels[:10_000]
    means = np.stack([train[labels == digit].mean(axis=0) for digit in range(10)])
    distance = (means * means).sum(axis=1) - 2 * test @ means.T
    accuracy = (distance.argmin(axis=1) == digits.test.labels).mean()
    assert 0.6 < accuracy < 0.9
