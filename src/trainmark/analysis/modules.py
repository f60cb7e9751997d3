"""The time that a device computes for the modules of a network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleTime:
    """What a device computes for one kind of module that a line calls, or for an optimiser.

    Args:
        name: name of the class, such as ``Linear`` or ``AdamW.step``.
        place: the user's line that calls it; empty if unknown.
        share: share of the time that the device computes, forward and backward.
    """

    name: str
    place: str
    share: float
