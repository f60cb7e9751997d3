"""Facts about a training with JAX, to which no changes are made yet."""

from __future__ import annotations

import json
from typing import Any

from ..patch import around
from . import Change, lines

_KEPT = "lines", "samples", "early", "late"
"""Lines of the script alone. Parts of a step are hidden in compiled functions."""


def facts(change: Change) -> None:
    """Report the user's lines that take the most time, from the first step on."""
    observer = change.observer
    has_begun = False

    def on_sampled(sampled: dict[str, Any]) -> None:
        kept = {name: sampled[name] for name in _KEPT if name in sampled}
        observer.changed("facts", json.dumps(kept))

    def stepped(real: Any, /, *args: Any, **more: Any) -> None:
        nonlocal has_begun
        real(*args, **more)
        if not has_begun:
            has_begun = True
            lines.sample(observer, on_sampled)

    around(observer, "stepped", stepped)
