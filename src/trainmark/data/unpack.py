"""The files of a dataset out of the archives that mirrors serve.

Nothing is extracted to disk: members are asked for by their exact names and read into memory, never more of one than
its known size and a little, so neither a path that climbs out of a folder nor a bomb has anything to work on.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from trainmark.data import idx
from trainmark.data.catalog import KnownDataset, KnownFile
from trainmark.data.mirrors import Mirror

Members: TypeAlias = "Iterator[tuple[KnownFile, bytes]]"

_NPY_HEADER = 1 << 10
"""Bytes that may precede the data of an array in NumPy's format; it writes 128 or fewer."""


class NotTheArchive(Exception):
    """Why an archive can't be used, as a clause."""


def unpack(archive: Path, mirror: Mirror, known: KnownDataset, files: Sequence[KnownFile]) -> Members:
    """Yields each of ``files`` with its content, which is not checked yet.

    Raises:
        NotTheArchive: the archive is damaged or lacks a file.
    """
    try:
        if mirror.packaging == "npz":
            yield from _npz(archive, known.image_shape[:2], files)
        elif mirror.packaging == "zip":
            yield from _zip(archive, mirror.folder, files)
        else:
            yield from _tar(archive, mirror.folder, files)
    except NotTheArchive:
        raise
    except Exception as error:  # nobody has written down what readers of archives raise for damaged ones
        raise NotTheArchive(f"served a {mirror.packaging} that can't be read: {error}") from error


def _zip(archive: Path, folder: str, files: Sequence[KnownFile]) -> Members:
    with zipfile.ZipFile(archive) as opened:
        for file in files:
            yield file, _member(opened, folder + file.name, file.size + 1)


def _member(opened: zipfile.ZipFile, name: str, most: int) -> bytes:
    """At most so many bytes of a member; only deflate can be asked for no more than those."""
    if opened.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotTheArchive(f"served a zip with {name} compressed in an unexpected way")
    with opened.open(name) as member:
        return member.read(most)


def _tar(archive: Path, folder: str, files: Sequence[KnownFile]) -> Members:
    wanted = {folder + file.name: file for file in files}
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened:
            content = opened.extractfile(member) if member.isreg() and member.name in wanted else None
            if content is not None:
                file = wanted.pop(member.name)
                yield file, content.read(file.size + 1)
    if wanted:
        raise NotTheArchive(f"served an archive without {', '.join(wanted)}")


def _npz(archive: Path, image: tuple[int, ...], files: Sequence[KnownFile]) -> Members:
    """Keras' ``mnist.npz``: x for images, y for labels. Each array becomes again the IDX file with the same content."""
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
