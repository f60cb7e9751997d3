"""Which function of a library a sample is in, below the user's line that has called the library.

A line such as ``trainer.train()`` takes all of the time, which tells nothing.
"""

from __future__ import annotations

import os
from typing import Any

from ..places import is_users_file

_PACKAGES = ("site-packages", "dist-packages")
_LEFT_OUT = ("torch", "trainmark")
"""Packages whose functions are not named. Those of the framework belong to a part of the step, and
trainmark's stand around them while a change is tried."""


def function_of(frame: Any) -> str | None:
    """Return the innermost function of a library, other than those left out, and where it begins.

    It is ``GPT2MLP.forward, transformers/models/gpt2/modeling_gpt2.py:365``. The result is None if
    the user's own code comes first, or if there is no such function.

    Args:
        frame: the innermost frame of a thread.
    """
    while frame is not None:
        code = frame.f_code
        if is_users_file(code.co_filename):
            return None
        file = _in_package(code.co_filename)
        if file and file.split("/", 1)[0] not in _LEFT_OUT:
            return f"{getattr(code, 'co_qualname', code.co_name)}, {file}:{code.co_firstlineno}"
        frame = frame.f_back
    return None


def _in_package(name: str) -> str:
    """Return the path of a file below the folder of all packages; empty if it is elsewhere."""
    parts = name.split(os.sep)
    for folder in _PACKAGES:
        if folder in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(folder) :])
    return ""
