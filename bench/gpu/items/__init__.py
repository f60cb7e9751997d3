"""The questions of the agenda, one file each, in its order."""

from __future__ import annotations

from gpu.items.best_loop import BestLoop
from gpu.items.correctness import Correctness
from gpu.items.explained import ExplainedScripts
from gpu.items.frameworks import Frameworks
from gpu.items.speeds import Speeds
from gpu.items.true_verdicts import TrueVerdicts
from gpu.items.worth_it import WorthIt
from gpu.measurement import Item

ITEMS: tuple[Item, ...] = (
    WorthIt(),
    ExplainedScripts(),
    Correctness(),
    TrueVerdicts(),
    BestLoop(),
    Frameworks(),
    Speeds(),
)


def find(name: str) -> Item:
    """Return the item of this name."""
    return next(item for item in ITEMS if item.name == name)
