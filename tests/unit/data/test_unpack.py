from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from trainmark.data.catalog import Mirror
from trainmark.data.unpack import NotTheArchive, unpack

from .archives import tar_gz
from .samples import Sample

TAR = Mirror("http://example.org/pictures.tar.gz", "tar.gz", folder="batches/")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def contents(archive: Path, mirror: Mirror, sample: Sample) -> dict[str, bytes]:
    with archive.open("rb") as opened:
        return {file.name: content for file, content in unpack(opened, mirror, sample.known.files)}


def test_tar(some_pictures: Sample, archive: Path) -> None:
    archive.write_bytes(
        tar_gz({f"batches/{name}": content for name, content in some_pictures.contents.items()})
    )
    files = {file.name for file in some_pictures.known.files}
    assert contents(archive, TAR, some_pictures).keys() == files


def test_only_what_is_wanted_is_read(some_pictures: Sample, archive: Path) -> None:
    archive.write_bytes(
        tar_gz({f"batches/{name}": content for name, content in some_pictures.contents.items()})
    )
    wanted = some_pictures.known.files[1:2]
    with archive.open("rb") as opened:
        assert [file for file, _ in unpack(opened, TAR, wanted)] == list(wanted)


def test_a_gzip_bomb_is_read_to_its_known_size(some_digits: Sample) -> None:
    (label_file,) = some_digits.known.files[1:2]
    bomb = io.BytesIO(gzip.compress(bytes(50 << 20), 1))
    ((_, content),) = unpack(bomb, Mirror("http://example.org/"), [label_file])
    assert len(content) == label_file.size + 1


@pytest.mark.parametrize(
    "prefix", ["../batches/", "/batches/", "batches/../batches/", "./batches/", ""]
)
def test_other_paths_are_other_files(some_pictures: Sample, archive: Path, prefix: str) -> None:
    archive.write_bytes(
        tar_gz({prefix + name: content for name, content in some_pictures.contents.items()})
    )
    with pytest.raises(NotTheArchive, match=r"without batches/data_batch_1\.bin"):
        contents(archive, TAR, some_pictures)


def test_a_link_is_no_file(some_pictures: Sample, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as opened:
        for name in some_pictures.contents:
            member = tarfile.TarInfo(f"batches/{name}")
            member.type = tarfile.SYMTYPE
            member.linkname = "/etc/passwd"
            opened.addfile(member)
    with pytest.raises(NotTheArchive, match="without"):
        contents(archive, TAR, some_pictures)


@pytest.mark.parametrize("cut", [0, 100, -10_000])
def test_a_damaged_archive_is_refused(some_pictures: Sample, archive: Path, cut: int) -> None:
    whole = tar_gz({f"batches/{name}": content for name, content in some_pictures.contents.items()})
    archive.write_bytes(whole[:cut])
    with pytest.raises(NotTheArchive):
        contents(archive, TAR, some_pictures)


def test_a_member_that_is_a_bomb_is_read_to_its_known_size(
    some_pictures: Sample, archive: Path
) -> None:
    file = some_pictures.known.files[0]
    bombs = {f"batches/{name}": bytes(50 << 20) for name in some_pictures.contents}
    archive.write_bytes(tar_gz(bombs))
    assert len(contents(archive, TAR, some_pictures)[file.name]) == file.size + 1
