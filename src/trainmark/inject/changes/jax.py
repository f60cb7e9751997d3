"""Facts about a training with JAX, to which no changes are made yet."""

from __future__ import annotations

from typing import Any

import jax

from ..patch import around
from . import Change
from .facts import facts_of

_KEPT = "lines", "samples", "early", "late", "known", "known_late", "known_at"
"""Facts of the script's lines. Parts of a step are hidden in compiled functions."""


def facts(change: Change) -> None:
    """Report the user's lines that take the most time, from the first step on."""
    every = facts_of(change.observer)
    switches = every.switches
    switches.watch("disable_jit", lambda: bool(jax.config.jax_disable_jit))
    switches.watch("debug_nans", lambda: bool(jax.config.jax_debug_nans))

    def stepped(real: Any, /, *args: Any, **more: Any) -> None:
        real(*args, **more)
        every.begin(kept=_KEPT)
        switches.stepped()

    around(change.observer, "stepped", stepped)
