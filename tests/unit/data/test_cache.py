from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from trainmark.data import cache


def test_a_file_appears_whole_and_readable_by_all(tmp_path: Path) -> None:
    cache.keep(tmp_path, "file", b"old")
    cache.keep(tmp_path, "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_nothing_is_left_when_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "in the way").touch()
    with pytest.raises(OSError):
        cache.keep(tmp_path, "file", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with cache.exclusive(tmp_path / "cache"):
            order.append("second")

    with cache.exclusive(tmp_path / "cache"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join(5)
    assert order == ["first", "second"]
