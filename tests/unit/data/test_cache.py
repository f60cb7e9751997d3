from __future__ import annotations

import threading
import time
from pathlib import Path

from trainmark.data import cache


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
    thread.join(120)
    assert order == ["first", "second"]
