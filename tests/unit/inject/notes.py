"""What a test sees of the changes to its training."""

from __future__ import annotations

from pathlib import Path
from types import FrameType
from typing import Any


class Notes:
    """What an observer receives of a test, whose file is the user's script.

    Args:
        file: the file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.changes: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.apart = 0.0

    def changed(self, name: str, proof: str) -> None:
        self.changes[name] = proof

    def cannot(self, name: str, why: str) -> None:
        self.failures[name] = why

    def took_apart(self, seconds: float) -> None:
        self.apart += seconds

    evaluates_since = None

    def is_users(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename == str(self.file)

    def users_place(self, frame: Any) -> str | None:
        while frame is not None and not self.is_users(frame):
            frame = frame.f_back
        return frame and f"{self.file.name}:{frame.f_lineno}"
