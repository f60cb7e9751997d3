"""Weights next to a record: ``OUT/<id>.safetensors``, float32 in canonical layout.

The format is a length, a JSON header and raw bytes
(https://github.com/huggingface/safetensors#format). The measured process may only import NumPy and
its framework, so it can't use the package ``safetensors``.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from trainmark import locks, regular
from trainmark.errors import DamagedData, DataError
from trainmark.workload.model import MOST_PARAMETERS, Model, Weights

_MOST_HEADER_BYTES = 1 << 20
"""Maximum size of the header, in bytes; it has about a hundred per tensor."""
_MOST_BYTES = _MOST_HEADER_BYTES + 4 * MOST_PARAMETERS
"""Maximum size of a file, in bytes: the header, and the largest network that can be described."""


def save(weights: Weights, path: Path) -> None:
    """Write ``weights`` to ``path``, whole or not at all."""
    header: dict[str, Any] = {}
    start = 0
    for name, value in weights.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(value.shape),
            "data_offsets": [start, start + value.nbytes],
        }
        start += value.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            locks.hold(file.fileno())
            file.write(len(text).to_bytes(8, "little") + text)
            for value in weights.values():
                file.write(np.ascontiguousarray(value, dtype="<f4").tobytes())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def average_of(path: Path) -> Path:
    """Return the path of the average of the weights in ``path``, for a workload that keeps one."""
    return path.with_name(f"{path.stem}.average{path.suffix}")


def load(path: Path) -> Weights:
    """Read weights; raises :class:`~trainmark.errors.DamagedData`."""
    try:
        return _parse(regular.read(path, _MOST_BYTES))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise DamagedData(
            f"{path} has no valid weights",
            expected="a safetensors file of float32 tensors",
            found=str(error) or type(error).__name__,
            fix="Train again with --save-weights.",
        ) from error


def load_for(model: Model, path: Path) -> Weights:
    """Read the weights of ``model``; raises what :func:`load` and :func:`require_fit` raise."""
    weights = load(path)
    require_fit(weights, model, path)
    return weights


def require_fit(weights: Weights, model: Model, path: Path) -> None:
    """Raise :class:`~trainmark.errors.DataError` unless these are all weights of ``model``."""
    extra = sorted(weights.keys() - model.weights.keys())
    if extra:
        raise DataError(
            f"the weights in {path} don't fit the network", found=f"an unknown tensor {extra[0]!r}"
        )
    for name, weight in model.weights.items():
        found = weights[name].shape if name in weights else None
        if found != weight.shape:
            raise DataError(
                f"the weights in {path} don't fit the network at {name}",
                expected=f"the shape {weight.shape}",
                found=f"the shape {found}" if found else "no such tensor",
            )


def digest(weights: Weights) -> str:
    """Return the SHA-256 of names and bytes, equal for two runs with the same initial weights."""
    sha = hashlib.sha256()
    for name in sorted(weights):
        sha.update(name.encode() + np.ascontiguousarray(weights[name], dtype="<f4").tobytes())
    return sha.hexdigest()


def _parse(content: bytes) -> Weights:
    length = int.from_bytes(content[:8], "little")
    if not 0 < length <= min(_MOST_HEADER_BYTES, len(content) - 8):
        raise ValueError(f"a header of {length} bytes in a file of {len(content)}")
    header = json.loads(content[8 : 8 + length])
    body = memoryview(content)[8 + length :]
    weights: Weights = {}
    at = 0
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    for name, entry in sorted(tensors.items(), key=lambda each: each[1]["data_offsets"]):
        (start, end) = entry["data_offsets"]
        shape = tuple(entry["shape"])
        numbers = (start, end, *shape)
        if not all(type(number) is int and 0 <= number <= len(content) for number in numbers):
            raise ValueError(
                f"tensor {name[:100]!r}: its shape and offsets must be integers within the file"
            )
        has_its_size = end - start == 4 * math.prod(shape)
        if entry["dtype"] != "F32" or not has_its_size or not start <= end <= len(body):
            raise ValueError(
                f"tensor {name!r} of type {entry['dtype']}, shape {shape}, bytes {start} to {end}"
            )
        # The format requires this; otherwise a few bytes could serve any number of tensors.
        if start != at:
            raise ValueError(
                f"tensor {name!r} starts at byte {start}, the previous one ends at {at}"
            )
        at = end
        tensor = np.frombuffer(body[start:end], dtype="<f4").reshape(shape)
        weights[name] = tensor.astype(np.float32)
    return weights
