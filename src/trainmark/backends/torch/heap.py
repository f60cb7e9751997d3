"""The C library's heap, which PyTorch's results on a CPU come from."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of malloc.h


def keep_freed_memory() -> bool:
    """Keep what is freed for what is asked for next, until the process ends.

    By itself glibc gives large blocks back to the system, and the next step pays for every page of them anew
    (docs/performance.md).

    Returns:
        whether glibc was told. An allocator that was put in its place (jemalloc, tcmalloc) goes by its own rules.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))
