from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from trainmark.data import stored
from trainmark.errors import DamagedData

from .samples import known_file

CONTENT = bytes(range(256)) * 40
KNOWN = known_file("some-file", "train", "images", 1, CONTENT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some-file.gz"


def test_plain_and_compressed_are_the_same(path: Path) -> None:
    path.write_bytes(gzip.compress(CONTENT))
    assert stored.read(path, KNOWN) == CONTENT
    path.write_bytes(CONTENT)  # as browsers leave it
    assert stored.read(path, KNOWN) == CONTENT


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 100])
def test_gzip_cut_off_is_noticed(path: Path, cut: int) -> None:
    path.write_bytes(gzip.compress(CONTENT)[:-cut])
    with pytest.raises(DamagedData, match="truncated"):
        stored.read(path, KNOWN)


def test_gzip_with_a_wrong_bit_is_noticed(path: Path) -> None:
    damaged = bytearray(gzip.compress(CONTENT))
    damaged[-6] ^= 1  # in the checksum at its end
    path.write_bytes(damaged)
    with pytest.raises(DamagedData, match="not a valid gzip"):
        stored.read(path, KNOWN)


@pytest.mark.parametrize("length", [0, 1, 2, len(CONTENT) - 1, len(CONTENT) + 1])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wrong_lengths_are_noticed(path: Path, length: int, pack: type[bytes]) -> None:
    path.write_bytes(pack((CONTENT + b"more")[:length]))
    with pytest.raises(DamagedData, match="wrong length: expected 10,240 bytes"):
        stored.read(path, KNOWN)


@pytest.mark.parametrize(
    "content",
    [gzip.compress(bytes(8 << 20)), gzip.compress(bytes(64 << 20), 1), bytes(64 << 20)],
    ids=["a small file", "a large file", "not compressed"],
)
def test_a_bomb_does_not_fill_the_memory(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(DamagedData, match="found more than 10,240"):
        stored.read(path, KNOWN)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 << 20, "a file is read in blocks of 1 MiB"


def test_a_bomb_can_be_as_small_as_a_known_file() -> None:
    """So its size gives no bomb away, and unpacking has to be limited."""
    assert len(gzip.compress(bytes(8 << 20))) < stored.most_bytes(KNOWN)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(DamagedData, match="No such file"):
        stored.read(path, KNOWN)
