"""A sentence about GPU time by module, since the host's time says little."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark import units
from trainmark.analysis.modules import ModuleTime

_LEAST_SHARE = 0.05
"""Share of the GPU's time from which on a module is worth naming."""
_MOST = 4
"""Most modules that are named."""


def gpu_time(modules: Sequence[ModuleTime]) -> list[str]:
    """Return in which modules the GPU computes; nothing if that is not known."""
    named = [
        f"{each.name}{f' ({each.place})' if each.place else ''} {units.percent(each.share, 0)}"
        for each in modules
        if each.share >= _LEAST_SHARE
    ]
    if not named:
        return []
    return [f"GPU time by module: {', '.join(named[:_MOST])}."]
