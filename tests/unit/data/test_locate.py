from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trainmark.data.catalog import Mirror
from trainmark.data.load import load
from trainmark.data.locate import Located, locate
from trainmark.errors import DamagedData, DataUnavailable, UnknownName, UsageError

from .archives import tar_gz
from .samples import Sample, digits
from .site import Site, serving


@contextmanager
def file_size_limit(most: int) -> Iterator[None]:
    """Writing beyond ``most`` bytes fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


FETCHED = digits(Mirror("http://127.0.0.1:9/", "tar.gz"))  # no one listens on the port "discard"


def find(sample: Sample, tmp_path: Path, **places: Path) -> Located:
    return locate(
        sample.known.name,
        cache=tmp_path / "cache",
        download=False,
        known_datasets={sample.known.name: sample.known},
        **places,
    )


def damage(folder: Path, name: str = "t10k-images-idx3-ubyte") -> None:
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)


def test_the_order_of_places(tmp_path: Path) -> None:
    named = FETCHED.write(tmp_path / "named" / "digits").parent
    environment = FETCHED.write(tmp_path / "environment" / "RAW" / "raw").parent.parent
    FETCHED.write(tmp_path / "cache" / "digits")

    first = find(FETCHED, tmp_path, named=named, environment=environment)
    assert (first.source, first.directory) == ("named", named / "digits")
    second = find(FETCHED, tmp_path, environment=environment)
    assert (second.source, second.directory) == ("environment", environment / "RAW" / "raw")
    third = find(FETCHED, tmp_path)
    assert (third.source, third.directory) == ("cache", tmp_path / "cache" / "digits")
    assert first.sha256 == second.sha256 == third.sha256
    assert (first.train_examples, first.test_examples, first.complete) == (60, 20, True)


def test_what_is_located_is_loaded(tmp_path: Path) -> None:
    found = find(FETCHED, tmp_path, named=FETCHED.write(tmp_path / "named"))
    dataset = load(found.name, found.directory, known_datasets={"digits": FETCHED.known})
    assert dataset.sha256 == found.sha256


@pytest.mark.parametrize("place", ["named", "environment"])
def test_a_damaged_file_in_a_named_folder_is_an_error(tmp_path: Path, place: str) -> None:
    FETCHED.write(tmp_path / "cache" / "digits")
    damage(FETCHED.write(tmp_path / "folder"))
    with pytest.raises(DamagedData, match="t10k-images-idx3-ubyte"):
        find(FETCHED, tmp_path, **{place: tmp_path / "folder"})


@pytest.mark.parametrize("place", ["named", "environment"])
def test_too_few_files_in_a_named_folder_are_an_error(tmp_path: Path, place: str) -> None:
    FETCHED.write(tmp_path / "cache" / "digits")
    FETCHED.write(tmp_path / "folder", "train-images-idx3-ubyte")
    with pytest.raises(DamagedData, match="only a part of digits"):
        find(FETCHED, tmp_path, **{place: tmp_path / "folder"})


@pytest.mark.parametrize("place", ["named", "environment"])
def test_a_named_folder_without_the_dataset_is_skipped(tmp_path: Path, place: str) -> None:
    FETCHED.write(tmp_path / "cache" / "digits")
    (tmp_path / "folder").mkdir()
    assert find(FETCHED, tmp_path, **{place: tmp_path / "folder"}).source == "cache"


@pytest.mark.parametrize(
    ("place", "by"), [("named", "--data-dir"), ("environment", "TRAINMARK_DATA")]
)
def test_a_named_folder_must_exist(tmp_path: Path, place: str, by: str) -> None:
    FETCHED.write(tmp_path / "cache" / "digits")
    with pytest.raises(UsageError, match=by):
        find(FETCHED, tmp_path, **{place: tmp_path / "absent"})


def test_a_part_is_accepted_where_it_was_named(some_pictures: Sample, tmp_path: Path) -> None:
    some_pictures.write(tmp_path / "folder", "data_batch_1.bin", "test_batch_first4.bin")
    found = find(some_pictures, tmp_path, named=tmp_path / "folder")
    assert (found.complete, found.train_examples, found.test_examples) == (False, 12, 4)


def test_nowhere(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataUnavailable) as caught:
        find(FETCHED, tmp_path, named=tmp_path / "folder")
    text = str(caught.value)
    assert f"{tmp_path / 'folder'}: no digits in it" in text
    assert "mirrors: not tried" in text
    assert "--data-dir" in text
    assert "synthetic-digits" in text


def test_a_damaged_cache_is_fetched_again(site: Site, tmp_path: Path) -> None:
    sample = digits(Mirror(f"{site.url}/digits.tar.gz", "tar.gz"))
    site.pages["/digits.tar.gz"] = serving(tar_gz(sample.contents))
    known = {"digits": sample.known}
    assert locate("digits", cache=tmp_path, known_datasets=known).source == "download"
    assert locate("digits", cache=tmp_path, known_datasets=known).source == "cache"
    damage(tmp_path / "digits")
    assert locate("digits", cache=tmp_path, known_datasets=known).source == "download"
    assert len(site.requests) == 2


def test_a_damaged_cache_is_not_used_without_mirrors(tmp_path: Path) -> None:
    damage(FETCHED.write(tmp_path / "cache" / "digits"))
    with pytest.raises(DataUnavailable):
        find(FETCHED, tmp_path)


def test_every_mirror_that_failed_is_named(site: Site, tmp_path: Path) -> None:
    sample = digits(Mirror(f"{site.url}/a/"), Mirror("http://127.0.0.1:9/b/"))
    with pytest.raises(DataUnavailable) as caught:
        locate("digits", cache=tmp_path, known_datasets={"digits": sample.known})
    assert f"{site.url}/a/: HTTP 404 Not Found" in str(caught.value)
    assert (
        "http://127.0.0.1:9/b/: no answer: Failed to establish a new connection: [Errno 111] "
        "Connection refused" in str(caught.value)
    )


@pytest.mark.parametrize("download", [True, False])
def test_what_is_drawn_needs_no_permission_to_download(
    some_digits: Sample, tmp_path: Path, download: bool
) -> None:
    known = {"digits": some_digits.known}
    assert (
        locate("digits", cache=tmp_path, download=download, known_datasets=known).source == "drawn"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a file's size is Linux's")
def test_a_full_disk(site: Site, tmp_path: Path) -> None:
    sample = digits(Mirror(f"{site.url}/digits.tar.gz", "tar.gz"))
    site.pages["/digits.tar.gz"] = serving(tar_gz(sample.contents))
    with (
        file_size_limit(1000),
        pytest.raises(DataUnavailable, match=r"can't be used: found .*File too large") as caught,
    ):
        locate("digits", cache=tmp_path, known_datasets={"digits": sample.known})
    assert "Free space" in str(caught.value)
    assert [path.name for path in (tmp_path / "digits").iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataUnavailable, match=r"the cache .* can't be used"):
        locate("digits", cache=tmp_path / "file", known_datasets={"digits": FETCHED.known})


def test_an_unknown_dataset(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="cifar10"):
        locate("cifar", cache=tmp_path)


def test_real_data(real_data: Path, tmp_path: Path) -> None:
    mnist = locate("mnist", environment=real_data, cache=tmp_path)
    assert (mnist.source, mnist.directory) == ("environment", real_data / "mnist")
    assert (mnist.train_examples, mnist.test_examples, mnist.complete) == (60_000, 10_000, True)
    cifar10 = locate("cifar10", environment=real_data, cache=tmp_path)
    assert (cifar10.train_examples, cifar10.test_examples, cifar10.complete) == (
        10_000,
        1_000,
        False,
    )
