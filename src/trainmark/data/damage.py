"""Errors about damaged files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainmark.errors import DamagedData

CLASSES = 10
"""Classes of every dataset whose labels are in files."""


def damaged(path: Path, problem: str, *, expected: str = "", found: str = "") -> DamagedData:
    """Return the error to raise for the file at ``path``."""
    return DamagedData(
        f"{path}: {problem}",
        expected=expected,
        found=found,
        fix="Replace the file with the original, or name another folder with --data-dir.",
    )


def check_labels(labels: NDArray[np.uint8], path: Path) -> None:
    """Raise DamagedData if a label of the file at ``path`` is not a class."""
    wrong = np.flatnonzero(labels >= CLASSES)
    if len(wrong):
        raise damaged(
            path,
            "a label is not a class",
            expected=f"labels from 0 to {CLASSES - 1}",
            found=f"{labels[wrong[0]]} at example {wrong[0]}",
        )
