from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainmark.data import idx
from trainmark.data.catalog import Catalog
from trainmark.data.load import load
from trainmark.errors import DamagedData, DataUnavailable

from .samples import Sample


def catalog_of(sample: Sample) -> Catalog:
    return {sample.known.name: sample.known}


def test_digits(some_digits: Sample, tmp_path: Path) -> None:
    dataset = load("digits", some_digits.write(tmp_path), known_datasets=catalog_of(some_digits))
    assert dataset.train.images.shape == (60, 28, 28, 1)
    assert dataset.test.images.shape == (20, 28, 28, 1)
    assert idx.encode(dataset.test.images[..., 0]) == some_digits.contents["t10k-images-idx3-ubyte"]
    assert idx.encode(dataset.train.labels) == some_digits.contents["train-labels-idx1-ubyte"]
    assert dataset.complete


def test_pictures(some_pictures: Sample, tmp_path: Path) -> None:
    dataset = load(
        "pictures", some_pictures.write(tmp_path), known_datasets=catalog_of(some_pictures)
    )
    assert dataset.train.images.shape == (60, 32, 32, 3)
    assert dataset.train.images.flags.c_contiguous
    assert dataset.complete
    # The last training picture is the last record of the fifth file.
    record = np.frombuffer(some_pictures.contents["data_batch_5.bin"], np.uint8)[-3073:]
    assert dataset.train.labels[-1] == record[0]
    assert np.array_equal(
        dataset.train.images[-1], record[1:].reshape(3, 32, 32).transpose(1, 2, 0)
    )


def test_a_part_says_so_and_has_another_name(some_pictures: Sample, tmp_path: Path) -> None:
    known = catalog_of(some_pictures)
    whole = load("pictures", some_pictures.write(tmp_path / "whole"), known_datasets=known)
    some_pictures.write(tmp_path / "part", "data_batch_3.bin", "test_batch_first4.bin")
    part = load("pictures", tmp_path / "part", known_datasets=known)
    assert not part.complete
    assert (len(part.train), len(part.test)) == (12, 4)
    assert part.sha256 != whole.sha256


@pytest.mark.parametrize(
    ("name", "place", "byte", "problem"),
    [
        ("train-images-idx3-ubyte", 3, 0x01, "magic number"),
        ("train-images-idx3-ubyte", 5000, None, "not the known train-images-idx3-ubyte"),
        ("t10k-labels-idx1-ubyte", 8 + 7, 10, "found 10 at example 7"),
        ("t10k-labels-idx1-ubyte", 8 + 7, None, "not the known t10k-labels-idx1-ubyte"),
    ],
)
def test_damaged_digits(
    some_digits: Sample, tmp_path: Path, name: str, place: int, byte: int | None, problem: str
) -> None:
    path = some_digits.write(tmp_path) / name
    content = bytearray(path.read_bytes())
    content[place] = (content[place] ^ 1) if byte is None else byte
    path.write_bytes(content)
    with pytest.raises(DamagedData, match=problem) as caught:
        load("digits", tmp_path, known_datasets=catalog_of(some_digits))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("place", "byte", "problem"),
    [(0, 10, "found 10 at example 0"), (1, None, "not the known data_batch_2.bin")],
)
def test_damaged_pictures(
    some_pictures: Sample, tmp_path: Path, place: int, byte: int | None, problem: str
) -> None:
    path = some_pictures.write(tmp_path) / "data_batch_2.bin"
    content = bytearray(path.read_bytes())
    content[place] = (content[place] ^ 1) if byte is None else byte
    path.write_bytes(content)
    with pytest.raises(DamagedData, match=problem):
        load("pictures", tmp_path, known_datasets=catalog_of(some_pictures))


def test_a_folder_without_it(some_digits: Sample, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match="does not contain digits"):
        load("digits", tmp_path, known_datasets=catalog_of(some_digits))


def test_real_mnist(real_data: Path) -> None:
    mnist = load("mnist", real_data / "mnist")
    assert mnist.complete
    assert mnist.train.images.mean() == pytest.approx(33.3184, abs=1e-4)
    assert mnist.train.images.std() == pytest.approx(78.5675, abs=1e-4)
    assert np.count_nonzero(mnist.train.images) / len(mnist.train) == pytest.approx(149.9, abs=0.05)
    assert mnist.test.images.mean() == pytest.approx(33.7912, abs=1e-4)
    assert mnist.test.images.std() == pytest.approx(79.1725, abs=1e-4)
    train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(mnist.train.labels).tolist() == train
    assert np.bincount(mnist.test.labels).tolist() == [
        980,
        1135,
        1032,
        1010,
        982,
        892,
        958,
        1028,
        974,
        1009,
    ]
    assert mnist.train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert mnist.test.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


def test_real_part_of_cifar10(real_data: Path) -> None:
    cifar10 = load("cifar10", real_data / "cifar10" / "cifar-10-batches-bin")
    assert not cifar10.complete
    assert cifar10.train.images.shape == (10_000, 32, 32, 3)
    assert cifar10.test.images.shape == (1_000, 32, 32, 3)
    assert cifar10.train.labels[:2].tolist() == [6, 9]  # a frog, a truck
    # The frog's first pixel and the sky above are known from every tutorial: 59, 62, 63.
    assert cifar10.train.images[0, 0, 0].tolist() == [59, 62, 63]


def imported_by(module: str) -> set[str]:
    """Return the modules that importing ``module`` in a fresh interpreter loads: whole names."""
    # A module without __spec__ was not imported: Cython puts such modules there for itself.
    code = (
        f"import sys; before = set(sys.modules); import {module}\n"
        "print(*(name for name in set(sys.modules) - before if getattr(sys.modules[name], "
        "'__spec__', None)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_the_child_needs_numpy_alone_and_no_network() -> None:
    modules = imported_by("trainmark.data.load")
    assert {name.partition(".")[0] for name in modules} - sys.stdlib_module_names == {
        "trainmark",
        "numpy",
    }
    assert not modules & {"requests", "http.client", "tarfile"}


def test_that_check_can_fail() -> None:
    assert imported_by("trainmark.data.fetch") >= {"requests", "http.client", "tarfile"}


def test_finding_data_imports_no_download_library() -> None:
    assert "requests" not in imported_by("trainmark.data.locate")
