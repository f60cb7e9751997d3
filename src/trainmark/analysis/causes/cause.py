"""What a cause of slow steps is, and what tells of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trainmark.analysis.experiments import ScriptPart
from trainmark.record.growth import growing_line, growth_of
from trainmark.record.observed import Observed


@dataclass(frozen=True)
class Calls:
    """Calls of a known function.

    Args:
        per_step: how many there are in each step, on average.
        usual: how many there usually are in a step that has any.
        share: share of the time of all steps that they take.
        places: the lines that call it, those with the most time first.
    """

    per_step: float
    usual: int
    share: float
    places: tuple[str, ...]


_FEWEST_SAMPLES = 20
"""Fewest samples of which a share says something."""


@dataclass(frozen=True)
class Growing:
    """A variable that gets larger from step to step.

    Args:
        function: the first line of the function that it belongs to, as ``file:line``.
        name: its name, such as ``self.losses``.
        kind: ``graph``, ``list of graphs``, ``list`` or ``tensor``.
        gain: nodes, elements or rows that it gains in each step.
    """

    function: str
    name: str
    kind: str
    gain: float


@dataclass(frozen=True)
class Evidence:
    """What was seen of an unchanged script.

    Args:
        observed: its steps.
        facts: what was sampled and counted, as :mod:`trainmark.inject.changes.facts` reports it.
        cores: number of cores that it may use.
        physical_cores: the same without those that share their parts with another one.
        texts: source of its slowest lines.
    """

    observed: Observed
    facts: Mapping[str, Any]
    cores: int
    physical_cores: int
    texts: Mapping[str, str] = field(default_factory=dict)

    def calls(self, name: str) -> Calls | None:
        """Return the calls of a known function; None if there are none."""
        found = self.facts.get("calls", {}).get(name)
        steps = self.observed.steps - 1  # they are counted from the end of the first step on
        if not found or steps < 1 or not self.observed.all_seconds:
            return None
        share = min(found["seconds"] / self.observed.all_seconds, 1.0)
        per_step = found["times"] / steps
        usual = found["usual"] or max(round(per_step), 1)
        return Calls(per_step, usual, share, tuple(found["places"]))

    def share(self, *names: str, late: bool = False) -> float:
        """Return the share of samples in known functions, of which none calls another one.

        Args:
            names: their names.
            late: of the last third of the samples.
        """
        if not self._has_samples:
            return 0.0
        known: Mapping[str, float] = self.facts.get("known_late" if late else "known", {})
        return min(sum(known.get(name, 0.0) for name in names), 1.0)

    def of_part(self, name: str) -> float:
        """Return the share of samples in a part of the training, such as ``loader``."""
        parts: Mapping[str, float] = self.facts.get("parts", {}) if self._has_samples else {}
        return parts.get(name, 0.0)

    @property
    def _has_samples(self) -> bool:
        """Whether there are enough samples for a share of them to say something."""
        return bool(self.facts.get("samples", 0) >= _FEWEST_SAMPLES)

    def place(self, *names: str) -> str | None:
        """Return the user's line that calls the known function with the largest share."""
        largest = max(names, key=self.share)
        place: str | None = self.facts.get("known_at", {}).get(largest)
        return place

    @property
    def draws(self) -> bool:
        """Whether loading draws random numbers, so that batches differ from epoch to epoch."""
        return bool(self.facts.get("draws", False))

    @property
    def growing(self) -> tuple[Growing, ...]:
        """Variables that get larger from step to step."""
        return tuple(Growing(**each) for each in self.facts.get("growing", ()))

    @property
    def grows_at(self) -> str | None:
        """The line that makes steps longer and longer, if there is one."""
        found = growth_of(self.observed)
        if found is None:
            return None
        return growing_line(found, self.facts.get("early", {}), self.facts.get("late", {}))

    def is_on(self, switch: str) -> bool:
        """Whether a switch was on in most steps."""
        return switch in self.facts.get("switches", {})

    def set_at(self, switch: str) -> str | None:
        """Return the line that turned a switch on; None if it is unknown."""
        return self.facts.get("switches", {}).get(switch) or None


@dataclass(frozen=True)
class Found:
    """A cause that was found.

    Args:
        name: its name.
        seen: what was seen, as the beginning of a sentence.
        cure: what to do, as a sentence without its full stop.
        source: where this is documented.
        place: ``file:line``; None if unknown.
        share: share of the time, if it was sampled or measured.
        changes: experiments that do the cure, the likeliest first.
        is_removed: whether the cure saves all of the share, rather than doing the same work faster.
        part: the part of the script that it makes slow, if it is in one.
        variable: what grows; its line is known from the source alone.
        further: more lines like ``place``.
    """

    name: str
    seen: str
    cure: str
    source: str
    place: str | None = None
    share: float | None = None
    changes: tuple[str, ...] = ()
    is_removed: bool = True
    part: ScriptPart | None = None
    variable: Growing | None = None
    further: tuple[str, ...] = ()


class Cause:
    """A known cause.

    Each class says how it is detected, and what cures it.
    """

    name: ClassVar[str]
    cure: ClassVar[str]
    source: ClassVar[str]
    changes: ClassVar[Sequence[str]] = ()
    is_removed: ClassVar[bool] = True
    part: ClassVar[ScriptPart | None] = None

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if there is evidence of it."""
        raise NotImplementedError

    def found(
        self,
        seen: str,
        place: str | None = None,
        share: float | None = None,
        changes: Sequence[str] | None = None,
        cure: str = "",
    ) -> Found:
        """Return it as found, with its usual changes and cure unless others are given."""
        tried = self.changes if changes is None else changes
        return Found(
            self.name,
            seen,
            cure or self.cure,
            self.source,
            place,
            share,
            tuple(tried),
            self.is_removed,
            self.part,
        )


class SwitchOn(Cause):
    """A switch that slows every step down as long as it is on."""

    switch: ClassVar[str]
    seen: ClassVar[str]

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the switch was on in most steps."""
        if not evidence.is_on(self.switch):
            return None
        return self.found(self.seen, evidence.set_at(self.switch))


class InKnownFunctions(Cause):
    """Much of the time is spent in known functions of a library."""

    functions: ClassVar[Sequence[str]]
    seen: ClassVar[str]
    least: ClassVar[float] = 0.05
    """Smallest share of the time that is worth naming."""
    in_the_end: ClassVar[bool] = False
    """Whether only the last third of the samples counts: what happens once is over by then."""

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the share is large enough."""
        share = evidence.share(*self.functions, late=self.in_the_end)
        if share < self.least:
            return None
        return self.found(self.seen, evidence.place(*self.functions), share)
