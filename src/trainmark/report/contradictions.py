"""Whether what an answer says agrees with the numbers next to it.

Each statement of an answer is compared with what was measured before it is shown. One that
contradicts it is left out: a wrong sentence is worse than none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainmark.analysis.changes import SAMPLED, Finding, sampled

MAY_HELP = 1.1
"""A change whose interval reaches above this is unclear; the others are not worth it."""
LARGE_SHARE = 0.5
"""With at least this share of the time, a cause is never said to be too noisy to tell."""


@dataclass(frozen=True)
class Statement:
    """A sentence of an answer, or a few of them, with what they are about.

    Args:
        text: what is shown.
        promises: findings that it advises, or whose gain it promises.
        unclear: findings that it calls too noisy to tell.
    """

    text: str
    promises: tuple[Finding, ...] = ()
    unclear: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Measured:
    """What an answer has to agree with.

    Args:
        findings: what each change gives.
        shares: share of the time of each known cause, by its name.
        samples: number of samples that the shares come from.
        workers: number of worker processes that the script's loader has; None if unknown.
        busy: the words by which a promise says that other programs used the machine; empty if they
            did not.
    """

    findings: Sequence[Finding] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    samples: int | None = None
    workers: int | None = None
    busy: str = ""


def is_idle(found: Finding) -> bool:
    """Whether a change certainly gives little or nothing."""
    return not found.wins and (found.speedup.high or math.inf) <= MAY_HELP


def takes_long(found: Finding, shares: Mapping[str, float]) -> bool:
    """Whether the cause that a finding is about takes half of the time or more."""
    return found.cause is not None and shares.get(found.cause.name, 0.0) >= LARGE_SHARE


def contradiction(said: Statement, measured: Measured) -> str | None:
    """Return what a statement contradicts; None if it agrees with everything."""
    reasons = [
        *(_of_promise(said, found, measured) for found in said.promises),
        *(_of_unclear(found, measured) for found in said.unclear),
    ]
    return next(filter(None, reasons), None)


def agreeing(said: Iterable[Statement], measured: Measured) -> list[Statement]:
    """Return the statements that contradict nothing that was measured."""
    return [each for each in said if contradiction(each, measured) is None]


def _of_promise(said: Statement, found: Finding, measured: Measured) -> str | None:
    """Return what is wrong with the promise of a change."""
    by_change = {each.change: each for each in measured.findings}
    if is_idle(by_change.get(found.change, found)):
        return f"{found.change} was measured to gain nothing"
    if found.proof == SAMPLED and found.speedup.value > _most(found, measured):
        return f"{found.change} promises more than all of its share of the time"
    if f"workers={measured.workers}" in found.change.split("+"):
        return f"the script has {measured.workers} worker processes already"
    if measured.busy and measured.busy not in said.text:
        return "it does not say that other programs used the machine"
    return None


def _most(found: Finding, measured: Measured) -> float:
    """Return the largest speed-up that removing a cause's share of the time could give."""
    share = found.cause.share if found.cause is not None else None
    if share is None or not measured.samples:
        return found.speedup.high or math.inf
    return sampled(share, measured.samples).high or math.inf


def _of_unclear(found: Finding, measured: Measured) -> str | None:
    """Return what is wrong with calling a change too noisy to tell."""
    if found.wins or is_idle(found):
        return f"{found.change} is clear"
    if takes_long(found, measured.shares):
        return f"what {found.change} is about takes half of the time or more"
    return None
