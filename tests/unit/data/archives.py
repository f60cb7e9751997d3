"""Archives as the mirrors serve them."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from trainmark.data import idx

from .samples import Sample


def zip_(contents: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in contents.items():
            opened.writestr(name, content)
    return archive.getvalue()


def tar_gz(contents: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as opened:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def npz(digits: Sample) -> bytes:
    """Written by NumPy itself, with Keras' names."""
    arrays = {}
    for file in digits.known.files:
        shape = (file.examples, 28, 28) if file.holds == "images" else (file.examples,)
        content = digits.contents[file.name]
        arrays[f"{'x' if file.holds == 'images' else 'y'}_{file.split}"] = idx.parse(content, shape, Path(file.name))
    archive = io.BytesIO()
    np.savez_compressed(archive, **arrays)
    return archive.getvalue()
