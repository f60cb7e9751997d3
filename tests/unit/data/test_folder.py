from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.data import folder
from trainmark.errors import DamagedData

from .samples import Sample


@pytest.mark.parametrize("layout", ["digits", "RAW/raw", "."])
@pytest.mark.parametrize("compressed", [True, False])
def test_every_layout_is_found(
    some_digits: Sample, tmp_path: Path, layout: str, compressed: bool
) -> None:
    some_digits.write(tmp_path / layout, compressed=compressed)
    holding = folder.search(some_digits.known, tmp_path)
    assert holding is not None
    assert holding.directory == tmp_path / layout
    assert holding.complete and holding.usable


def test_plain_is_preferred_to_compressed(some_digits: Sample, tmp_path: Path) -> None:
    some_digits.write(tmp_path, compressed=True)
    some_digits.write(tmp_path)
    holding = folder.examine(some_digits.known, tmp_path)
    assert holding is not None
    assert {file.path.suffix for file in holding.files} == {""}


def test_an_empty_folder_holds_nothing(some_digits: Sample, tmp_path: Path) -> None:
    assert folder.search(some_digits.known, tmp_path) is None
    assert folder.search(some_digits.known, tmp_path / "absent") is None


def test_digits_with_a_missing_file_are_refused(some_digits: Sample, tmp_path: Path) -> None:
    some_digits.write(
        tmp_path, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"
    )
    with pytest.raises(DamagedData, match="expected also t10k-labels-idx1-ubyte"):
        folder.search(some_digits.known, tmp_path)


def test_a_whole_copy_further_down_wins_over_a_part(some_digits: Sample, tmp_path: Path) -> None:
    some_digits.write(tmp_path / "digits", "train-images-idx3-ubyte")
    some_digits.write(tmp_path / "RAW/raw")
    holding = folder.search(some_digits.known, tmp_path)
    assert holding is not None and holding.directory == tmp_path / "RAW/raw"


@pytest.mark.parametrize(
    ("names", "complete"),
    [
        ((), True),
        (("data_batch_2.bin", "test_batch.bin"), False),
        (("data_batch_1.bin", "test_batch_first4.bin"), False),
    ],
)
def test_some_pictures_are_enough(
    some_pictures: Sample, tmp_path: Path, names: tuple[str, ...], complete: bool
) -> None:
    some_pictures.write(tmp_path, *names)
    holding = folder.search(some_pictures.known, tmp_path)
    assert holding is not None
    assert holding.complete is complete
    if names:
        assert [file.known.name for file in holding.files] == list(names)


def test_the_whole_test_file_is_preferred_to_its_beginning(
    some_pictures: Sample, tmp_path: Path
) -> None:
    some_pictures.write(tmp_path, "data_batch_1.bin", "test_batch.bin", "test_batch_first4.bin")
    holding = folder.examine(some_pictures.known, tmp_path)
    assert holding is not None
    assert [file.known.name for file in holding.files] == ["data_batch_1.bin", "test_batch.bin"]


@pytest.mark.parametrize("name", ["data_batch_1.bin", "test_batch.bin", "test_batch_first4.bin"])
def test_pictures_to_train_on_or_to_test_with_alone_are_refused(
    some_pictures: Sample, tmp_path: Path, name: str
) -> None:
    some_pictures.write(tmp_path, name)
    with pytest.raises(DamagedData, match="only a part"):
        folder.search(some_pictures.known, tmp_path)
