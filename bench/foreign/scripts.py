"""The listed public scripts, and what is true of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).resolve().parent
LISTED = HERE / "scripts.toml"
CANDIDATES = HERE / "candidates.toml"


@dataclass(frozen=True)
class Truth:
    """What a complete run of a script does, as its source and PyTorch's own hooks say.

    Args:
        framework: what trains.
        steps: fewest and most steps of the optimizer that counts.
        examples: fewest and most examples of a mean step; None if a step has no such number.
        evaluations: fewest and most evaluations.
        trainings: number of trainings.
        slow: places, each ``file:first-last``, one of which an answer should name; empty if they
            are unknown.
        cures: changes of `explain`, one of which an answer should name with the place; ``nothing``
            if none helps; empty if unknown.
    """

    framework: str
    steps: tuple[int, int]
    examples: tuple[float, float] | None
    evaluations: tuple[int, int]
    trainings: int = 1
    slow: tuple[str, ...] = ()
    cures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Script:
    """A public script; see the comments of scripts.toml."""

    name: str
    repository: str
    commit: str
    folder: str
    command: tuple[str, ...]
    stand_ins: tuple[str, ...]
    environment: dict[str, str]
    options: tuple[str, ...]
    is_quick: bool
    truth: Truth | None


def listed() -> list[Script]:
    """Return the listed scripts."""
    return [_script(each) for each in _tables(LISTED)]


def drawn(number: int, seed: int) -> list[str]:
    """Return the names of candidates that are drawn by a seed.

    Those that were used in development are not among them.
    """
    used = {script.name for script in listed()}
    names = sorted(each["name"] for each in _tables(CANDIDATES))
    return random.Random(seed).sample([name for name in names if name not in used], number)


def _tables(file: Path) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))["script"]
    return tables


def _script(table: dict[str, Any]) -> Script:
    truth = table.get("truth")
    return Script(
        name=table["name"],
        repository=table["repository"],
        commit=table["commit"],
        folder=table["folder"],
        command=tuple(table["command"]),
        stand_ins=tuple(table["stand_ins"]),
        environment=table.get("environment", {}),
        options=tuple(table.get("options", ())),
        is_quick=table.get("quick", False),
        truth=None if truth is None else _truth(truth),
    )


def _truth(table: dict[str, Any]) -> Truth:
    examples = table.get("examples")
    return Truth(
        framework=table["framework"],
        steps=_bounds(table["steps"]),
        examples=None if examples is None else _bounds(examples),
        evaluations=_bounds(table["evaluations"]),
        trainings=table.get("trainings", 1),
        slow=tuple(table.get("slow", ())),
        cures=tuple(table.get("cures", ())),
    )


def _bounds(value: Any) -> tuple[Any, Any]:
    """Return the least and the most of a number, or of a pair of them."""
    return tuple(value) if isinstance(value, list) else (value, value)
