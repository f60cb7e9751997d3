"""How many steps a training will have, if the framework knows it."""

from __future__ import annotations

import inspect
import sys
from types import FrameType
from typing import Any

_TRAINER = "/transformers/trainer.py"


def steps_left(frame: FrameType | None) -> int | None:
    """Return how many steps a training by Transformers' Trainer has left; None for any other.

    Args:
        frame: a frame below that of the Trainer.
    """
    while frame is not None and not frame.f_code.co_filename.endswith(_TRAINER):
        frame = frame.f_back
    if frame is None:
        return None
    state: Any = getattr(frame.f_locals.get("self"), "state", None)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.version_info < (3, 13):
        frame.f_locals.clear()  # a copy, which would keep the tensors of this step
    steps = getattr(state, "max_steps", None)
    done = getattr(state, "global_step", None)
    if not isinstance(steps, int) or not isinstance(done, int):
        return None
    return steps - done if steps > done else None
