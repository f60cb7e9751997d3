"""The user's lines in which a training spends its time, found by sampling the training thread."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LOADERS = ("dataloader.py", "fetch.py")
_EVERY_SECONDS, _TELL_EVERY, _MOST = 0.005, 50, 20


def stack(observer: Any) -> list[str]:
    """Return the lines of the user's that are being executed, the innermost first."""
    found: list[str] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        if observer.is_users(frame):
            found.append(observer.users_place(frame))
        frame = frame.f_back
    return found


def sample(observer: Any, tell: Callable[[dict[str, float], list[str]], None]) -> None:
    """Start to sample the calling thread.

    Calls ``tell`` now and then with the share of each line, and the number of samples under an empty name, and with
    the lines that run in a loader.
    """
    thread = threading.get_ident()

    def run() -> None:
        counts: dict[str, int] = {}
        loading: set[str] = set()
        total = 0
        while True:
            time.sleep(_EVERY_SECONDS)
            frame: Any = sys._current_frames().get(thread)
            place = observer.users_place(frame)
            if place is None:
                continue
            total += 1
            counts[place] = counts.get(place, 0) + 1
            while frame is not None:
                if frame.f_code.co_filename.endswith(_LOADERS):
                    loading.add(place)
                frame = frame.f_back
            if total % _TELL_EVERY == 0:
                most = sorted(counts.items(), key=lambda each: -each[1])[:_MOST]
                tell({"": total, **{name: count / total for name, count in most}}, sorted(loading)[:_MOST])

    tell({}, [])
    threading.Thread(target=run, daemon=True).start()
