from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from trainmark.data.mirrors import Mirror
from trainmark.data.unpack import NotTheArchive, unpack

from .archives import npz, tar_gz, zip_
from .samples import Sample

ZIP = Mirror("http://example.org/digits.zip", "zip")
NPZ = Mirror("http://example.org/digits.npz", "npz")
TAR = Mirror("http://example.org/pictures.tar.gz", "tar.gz", folder="batches/")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def contents(archive: Path, mirror: Mirror, sample: Sample) -> dict[str, bytes]:
    with archive.open("rb") as opened:
        return {file.name: content for file, content in unpack(opened, mirror, sample.known, sample.known.files)}


def test_zip(some_digits: Sample, archive: Path) -> None:
    archive.write_bytes(zip_(some_digits.contents))
    assert contents(archive, ZIP, some_digits) == some_digits.contents


def test_npz_becomes_idx_again(some_digits: Sample, archive: Path) -> None:
    archive.write_bytes(npz(some_digits))
    assert contents(archive, NPZ, some_digits) == some_digits.contents


def test_tar(some_pictures: Sample, archive: Path) -> None:
    archive.write_bytes(tar_gz({f"batches/{name}": content for name, content in some_pictures.contents.items()}))
    files = {file.name for file in some_pictures.known.files}
    assert contents(archive, TAR, some_pictures).keys() == files


def test_only_what_is_wanted_is_read(some_digits: Sample, archive: Path) -> None:
    archive.write_bytes(zip_(some_digits.contents))
    wanted = some_digits.known.files[1:2]
    with archive.open("rb") as opened:
        assert [file for file, _ in unpack(opened, ZIP, some_digits.known, wanted)] == list(wanted)


def test_a_gzip_bomb_is_read_to_its_known_size(some_digits: Sample) -> None:
    (label_file,) = some_digits.known.files[1:2]
    bomb = io.BytesIO(gzip.compress(bytes(50 << 20), 1))
    ((_, content),) = unpack(bomb, Mirror("http://example.org/"), some_digits.known, [label_file])
    assert len(content) == label_file.size + 1


@pytest.mark.parametrize("prefix", ["../batches/", "/batches/", "batches/../batches/", "./batches/", ""])
def test_other_paths_are_other_files(some_pictures: Sample, archive: Path, prefix: str) -> None:
    archive.write_bytes(tar_gz({prefix + name: content for name, content in some_pictures.contents.items()}))
    with pytest.raises(NotTheArchive, match=r"without batches/data_batch_1\.bin"):
        contents(archive, TAR, some_pictures)


def test_a_link_is_no_file(some_pictures: Sample, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as opened:
        for name in some_pictures.contents:
            member = tarfile.TarInfo(f"batches/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            opened.addfile(member)
    with pytest.raises(NotTheArchive, match="without"):
        contents(archive, TAR, some_pictures)


@pytest.mark.parametrize("mirror", [ZIP, NPZ, TAR], ids=lambda mirror: mirror.packaging)
@pytest.mark.parametrize("cut", [0, 100, -10_000])
def test_a_damaged_archive_is_refused(
    some_digits: Sample, some_pictures: Sample, archive: Path, mirror: Mirror, cut: int
) -> None:
    whole = {
        "zip": zip_(some_digits.contents),
        "npz": npz(some_digits),
        "tar.gz": tar_gz({f"batches/{name}": content for name, content in some_pictures.contents.items()}),
    }[mirror.packaging]
    archive.write_bytes(whole[:cut])
    with pytest.raises(NotTheArchive):
        contents(archive, mirror, some_pictures if mirror is TAR else some_digits)


def test_a_member_that_is_a_bomb_is_read_to_its_known_size(some_digits: Sample, archive: Path) -> None:
    name = some_digits.known.files[1].name
    archive.write_bytes(zip_({**some_digits.contents, name: bytes(50 << 20)}))
    assert len(contents(archive, ZIP, some_digits)[name]) == some_digits.known.files[1].size + 1


@pytest.mark.parametrize(
    "array",
    [
        np.array([{"pickled": "object"}], dtype=object),
        np.zeros((60, 28, 28), np.float32),
        np.zeros((61, 28, 28), np.uint8),
        np.zeros((28, 28, 60), np.uint8).T,
    ],
    ids=["objects", "floats", "too many", "Fortran order"],
)
def test_an_npz_with_other_arrays_is_refused(some_digits: Sample, archive: Path, array: object) -> None:
    npy = io.BytesIO()
    np.save(npy, np.asarray(array), allow_pickle=True)
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("x_train.npy", npy.getvalue())
    with pytest.raises(NotTheArchive, match="where uint8"):
        contents(archive, NPZ, some_digits)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_that_can_only_be_decompressed_whole_is_refused(
    some_digits: Sample, archive: Path, method: int
) -> None:
    with zipfile.ZipFile(archive, "w", method) as packed:
        for name, content in some_digits.contents.items():
            packed.writestr(name, content)
    with pytest.raises(NotTheArchive, match="compressed in an unexpected way"):
        contents(archive, ZIP, some_digits)


@pytest.mark.parametrize(("at", "byte"), [(4, 99), (6, 1)])
def test_an_archive_of_a_later_version_or_with_a_password_is_refused(
    some_digits: Sample, archive: Path, at: int, byte: int
) -> None:
    archive.write_bytes(zip_(some_digits.contents))
    content = bytearray(archive.read_bytes())
    place = -1
    while (place := content.find(b"PK\x01\x02", place + 1)) >= 0:
        content[place + 2 + at] = byte
    archive.write_bytes(content)
    with pytest.raises(NotTheArchive, match="can't be read"):
        contents(archive, ZIP, some_digits)
