from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trainmark.data import in_memory
from trainmark.data.catalog import RANDOM_IMAGES, RANDOM_TOKENS
from trainmark.data.load import DataFolder
from trainmark.data.locate import locate
from trainmark.errors import DataUnavailable


def test_images() -> None:
    dataset = DataFolder("random-images", None).load()
    assert dataset.train.images.shape == (512, 224, 224, 3)
    assert dataset.test.images.shape == (64, 224, 224, 3)
    assert dataset.test.images.mean() == pytest.approx(127.5, abs=0.1)
    assert 0 <= dataset.train.labels.min() < dataset.train.labels.max() < 1_000
    assert len(np.unique(dataset.train.labels)) > 350


def test_tokens() -> None:
    dataset = DataFolder("random-tokens", None, 1_024).load()
    assert dataset.train.tokens is not None
    assert (len(dataset.train), len(dataset.test)) == ((1 << 20) - 1_024, (1 << 16) - 1_024)
    assert dataset.train.tokens.max() == 50_303
    assert np.array_equal(dataset.train.labels[0], dataset.train.tokens[1:1_025])


def test_nothing_is_looked_for_or_written(tmp_path: Path) -> None:
    located = locate(
        "random-images", named=tmp_path / "nowhere", cache=tmp_path / "cache", download=False
    )
    assert (located.source, located.train_examples, located.test_examples) == ("memory", 512, 64)
    assert located.sha256 == located.folder.load().sha256
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("known", [RANDOM_IMAGES, RANDOM_TOKENS], ids=lambda known: known.name)
def test_other_bytes_than_the_catalogue_s_are_refused(known: in_memory.KnownDataset) -> None:
    *files, last = known.files
    with pytest.raises(DataUnavailable, match=f"generates different {last.name}"):
        in_memory.draw(replace(known, files=(*files, replace(last, sha256="0" * 64))))
