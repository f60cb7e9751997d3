"""Folders like those in which a kernel describes its machine."""

from __future__ import annotations

from pathlib import Path


def tree(root: Path, **files: str) -> Path:
    """Files below ``root``; two underscores stand for a slash, ``DOT`` for a dot."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
