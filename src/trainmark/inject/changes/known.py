"""Functions on a thread's stack that tell why a line takes long."""

from __future__ import annotations

from types import CodeType
from typing import Any

_ANY = ()
"""Stands for all functions of a file or a folder."""
_KNOWN = (
    ("recomputing", "torch/utils/checkpoint.py", ("recompute_fn", "unpack_hook", "backward")),
    ("weight average", "torch/optim/swa_utils.py", ("update_parameters",)),
    ("weight average", "timm/utils/model_ema.py", _ANY),
    ("copy", "copy.py", ("deepcopy",)),
    ("collation", "torch/utils/data/_utils/collate.py", _ANY),
    ("new iterator", "torch/utils/data/dataloader.py", ("_get_iterator",)),
    ("end of workers", "torch/utils/data/dataloader.py", ("_shutdown_workers",)),
    ("workers", "torch/utils/data/dataloader.py", ("_try_get_data",)),
    ("pandas", "pandas/", _ANY),
    ("images", "PIL/ImageFile.py", ("load",)),
    ("transforms", "torchvision/transforms/", _ANY),
    ("HDF5", "h5py/", _ANY),
    ("JSON", "json/decoder.py", _ANY),
    ("CSV", "csv.py", ("__next__", "fieldnames", "sniff")),
    ("progress bar", "tqdm/std.py", ("display",)),
    ("logging", "logging/__init__.py", _ANY),
    ("TensorBoard", "torch/utils/tensorboard/", _ANY),
    ("TensorBoard", "tensorboardX/", _ANY),
    ("Weights & Biases", "wandb/", _ANY),
    ("plots", "matplotlib/", _ANY),
    ("metrics of scikit-learn", "sklearn/metrics/", _ANY),
    ("metrics of TorchMetrics", "torchmetrics/", _ANY),
    ("compiling", "torch/_dynamo/convert_frame.py", _ANY),
)  # type: tuple[tuple[str, str, tuple[str, ...]], ...]
"""A name, the end of a file's path or a folder in it, and functions.

A function is only listed if what it calls is a part of it: a progress bar around a loader is on the
stack while the loader loads.
"""
OF_LOADING = {"workers", "collation", "pandas", "images", "transforms", "HDF5", "JSON", "CSV"}
"""Names that tell something while batches are loaded; elsewhere, such functions may do anything."""
_WHOLE = {"new iterator", "end of workers"}
"""Names of functions to which everything that they call belongs."""
_OF_CODE = {}  # type: dict[CodeType, frozenset[str]]
"""The names of each function that was met."""


def names_of(frame: Any) -> set[str]:
    """Return the names of what a thread is in.

    Args:
        frame: its innermost frame.
    """
    found: set[str] = set()
    while frame is not None:
        names = names_of_code(frame.f_code)
        if names & _WHOLE:
            found.clear()
        found |= names
        frame = frame.f_back
    return found


def names_of_code(code: CodeType) -> frozenset[str]:
    """Return the names of a function."""
    if code not in _OF_CODE:
        _OF_CODE[code] = frozenset(_names_of(code))
    return _OF_CODE[code]


def _names_of(code: CodeType) -> list[str]:
    file = "/" + code.co_filename.replace("\\", "/")
    return [
        name
        for name, path, functions in _KNOWN
        if ("/" + path in file if path.endswith("/") else file.endswith("/" + path))
        and (functions == _ANY or code.co_name in functions)
    ]
