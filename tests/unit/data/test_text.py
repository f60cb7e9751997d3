from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainmark.data.catalog import SHAKESPEARE, KnownDataset, Mirror
from trainmark.data.fetch import fetch
from trainmark.data.load import DataFolder, load
from trainmark.data.locate import locate
from trainmark.data.on_bytes import silent
from trainmark.errors import DamagedData

from .samples import Sample, known_file
from .site import Site, serving


def sentences(*mirrors: Mirror) -> Sample:
    """A text of 25 characters, of which 22 are trained on."""
    content = b"a bad cab, a dab, a cad.\n"
    file = known_file("text.txt", "train", "text", len(content), content)
    known = KnownDataset(
        "sentences",
        "a text",
        "text",
        (),
        (file,),
        ("sentences",),
        mirrors=mirrors,
        classes="\n ,.abcd",
    )
    return Sample(known, {"text.txt": content})


@pytest.fixture(scope="module")
def shakespeare(real_data: Path) -> Path:
    """The folder with the real text."""
    if not (real_data / "shakespeare" / "input.txt").is_file():
        pytest.skip("TRAINMARK_DATA has no shakespeare/input.txt")
    return real_data / "shakespeare"


def test_tokens_are_places_in_the_vocabulary(tmp_path: Path) -> None:
    sample = sentences()
    dataset = load("sentences", sample.write(tmp_path), known_datasets={"sentences": sample.known})
    assert dataset.train.tokens is not None
    assert dataset.test.tokens is not None
    assert dataset.train.tokens.dtype == np.uint8
    assert dataset.train.tokens[:6].tolist() == [4, 1, 5, 4, 7, 1]
    assert (len(dataset.train.tokens), dataset.test.tokens.tolist()) == (22, [7, 3, 0])


def test_windows_and_the_tokens_after_them(tmp_path: Path) -> None:
    sample = sentences()
    known = {"sentences": sample.known}
    windows = load("sentences", sample.write(tmp_path), known_datasets=known).windows(2)
    assert windows.test.images.tolist() == [[7, 3]]
    assert windows.test.labels.tolist() == [[3, 0]]
    sample.write(tmp_path / "sentences")
    located = locate(
        "sentences", named=tmp_path, cache=tmp_path / "cache", known_datasets=known
    ).windows(2)
    assert (
        (located.train_examples, located.test_examples)
        == (len(windows.train), len(windows.test))
        == (20, 1)
    )
    assert (located.windows(1).train_examples, located.windows(None)) == (21, located)


def test_a_character_outside_the_vocabulary_is_named(tmp_path: Path) -> None:
    sample = sentences()
    path = sample.write(tmp_path) / "text.txt"
    path.write_bytes(path.read_bytes().replace(b"cab", b"caf"))
    with pytest.raises(DamagedData, match="found b'f' at 8"):
        load("sentences", tmp_path, known_datasets={"sentences": sample.known})


def test_a_plain_file_is_downloaded(site: Site, tmp_path: Path) -> None:
    sample = sentences(Mirror(f"{site.url}/texts/", "plain"))
    site.pages["/texts/text.txt"] = serving(sample.contents["text.txt"])
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert (tmp_path / "text.txt").read_bytes() == sample.contents["text.txt"]


def test_a_plain_file_with_other_content_is_refused(site: Site, tmp_path: Path) -> None:
    sample = sentences(Mirror(f"{site.url}/texts/", "plain"))
    site.pages["/texts/text.txt"] = serving(sample.contents["text.txt"][::-1])
    (failure,) = fetch(sample.known, tmp_path, progress=silent)
    assert "served a different text.txt" in failure
    assert not (tmp_path / "text.txt").exists()


def test_shakespeare(shakespeare: Path) -> None:
    text = (shakespeare / "input.txt").read_text()
    vocabulary = "".join(map(str, SHAKESPEARE.classes))
    assert vocabulary == "".join(sorted(set(text)))
    dataset = DataFolder("shakespeare", str(shakespeare), 64).load()
    assert (len(dataset.train), len(dataset.test)) == (1_003_854 - 64, 111_540 - 64)
    assert "".join(vocabulary[token] for token in dataset.train.images[1_000]) == text[1_000:1_064]
    assert "".join(vocabulary[token] for token in dataset.test.labels[-1]) == text[-64:]
