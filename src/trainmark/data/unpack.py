"""Read the files of a dataset from what mirrors serve.

Nothing is extracted to disk: members are looked up by their exact names and read into memory, at most a little more
than their known size. So path traversal and decompression bombs have no effect.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, TypeAlias, assert_never

import numpy as np

from trainmark.data import idx
from trainmark.data.catalog import KnownDataset, KnownFile
from trainmark.data.mirrors import Mirror

Members: TypeAlias = "Iterator[tuple[KnownFile, bytes]]"

_NPY_HEADER = 1 << 10
"""Bytes that may precede the data of an array in NumPy's format; it writes 128 or fewer."""


class NotTheArchive(Exception):
    """Why an archive can't be used, as a clause."""


def unpack(archive: IO[bytes], mirror: Mirror, known: KnownDataset, files: Sequence[KnownFile]) -> Members:
    """Yield each of ``files`` with its content, which is not checked yet. A gzip file holds exactly one.

    Raises:
        NotTheArchive: the archive is damaged or lacks a file.
    """
    try:
        match mirror.packaging:
            case "gzip":
                with gzip.open(archive) as opened:
                    yield files[0], opened.read(files[0].size + 1)
            case "npz":
                yield from _npz(archive, known.image_shape[:2], files)
            case "zip":
                yield from _zip(archive, mirror.folder, files)
            case "tar.gz":
                yield from _tar(archive, mirror.folder, files)
            case _:
                assert_never(mirror.packaging)
    except NotTheArchive:
        raise
    except Exception as error:  # the readers don't document what they raise for damaged archives
        raise NotTheArchive(f"served a {mirror.packaging} that can't be read: {error}") from error


def _zip(archive: IO[bytes], folder: str, files: Sequence[KnownFile]) -> Members:
    with zipfile.ZipFile(archive) as opened:
        for file in files:
            yield file, _member(opened, folder + file.name, file.size + 1)


def _member(opened: zipfile.ZipFile, name: str, most: int) -> bytes:
    """At most ``most`` bytes of a member. Python's zipfile honours this limit for deflate only."""
    if opened.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotTheArchive(f"served a zip with {name} compressed in an unexpected way")
    with opened.open(name) as member:
        return member.read(most)


def _tar(archive: IO[bytes], folder: str, files: Sequence[KnownFile]) -> Members:
    wanted = {folder + file.name: file for file in files}
    with tarfile.open(fileobj=archive, mode="r:gz") as opened:
        for member in opened:
            content = opened.extractfile(member) if member.isreg() and member.name in wanted else None
            if content is not None:
                file = wanted.pop(member.name)
                yield file, content.read(file.size + 1)
    if wanted:
        raise NotTheArchive(f"served an archive without {', '.join(wanted)}")


def _npz(archive: IO[bytes], image: tuple[int, ...], files: Sequence[KnownFile]) -> Members:
    """Keras' ``mnist.npz``: x for images, y for labels. Turns each array back into the IDX file of the same content."""
    with zipfile.ZipFile(archive) as opened:
        for file in files:
            axis, shape = ("x", (file.examples, *image)) if file.holds == "images" else ("y", (file.examples,))
            npy = _member(opened, f"{axis}_{file.split}.npy", file.size + _NPY_HEADER)
            yield file, idx.header(shape) + _array_bytes(npy, shape)


def _array_bytes(npy: bytes, shape: tuple[int, ...]) -> bytes:
    """The data of an array in NumPy's format. Only its header is interpreted: nothing can be unpickled."""
    stream = io.BytesIO(npy)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise NotTheArchive("served an npz in an unexpected version of the format")
    found = np.lib.format.read_array_header_1_0(stream)
    if found != (shape, False, np.dtype(np.uint8)):
        raise NotTheArchive(f"served an npz with {found[2]} {found[0]} where uint8 {shape} is expected")
    return stream.read()
