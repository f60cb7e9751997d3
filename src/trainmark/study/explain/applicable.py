"""Which changes apply to a user's script, and why the others don't."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainmark.analysis.causes import Found
from trainmark.analysis.experiments import (
    CURES_OF_JAX,
    EXPERIMENTS,
    OF_CAUSES,
    OF_JAX,
    OF_KERAS,
    ONLY_JAX,
    ONLY_KERAS,
    experiment,
)
from trainmark.measure.host import usable_core_numbers
from trainmark.record.observed import IN_EVERY_STEP, Observed
from trainmark.units import percent

_MORE_BATCH = 8
"""How many times larger the batch of the change ``batch`` is."""
_MOST_WORKERS = 8
"""Maximum number of loader processes that is tried."""
_LARGE_SHARE = 0.25
"""Share of the time from which on changes to a part of the script are tried first."""
_NOT_FOR_JAX = "trainmark can't make this change to a JAX script"
_SLOW_SECONDS = 300.0
"""With at least this time, changes that start slowly are tried."""


def choose(
    seen: Observed,
    facts: Mapping[str, Any],
    seconds: float,
    only: Sequence[str] = (),
    causes: Sequence[Found] = (),
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the changes to try, why others were left out, and why the rest doesn't apply.

    Args:
        seen: what the unchanged script does.
        facts: what the change ``facts`` reported of it.
        seconds: the time for all experiments.
        only: known names of the changes to try; all that apply by default, first what may cure a
            known cause, then changes to a slow part.
        causes: known causes of which there is evidence.
    """
    others: dict[str, str] = {}
    if seen.framework == "jax":
        others = dict.fromkeys(EXPERIMENTS.keys() - {*OF_JAX, *CURES_OF_JAX}, _NOT_FOR_JAX)
    else:
        others = dict.fromkeys((*ONLY_JAX, *CURES_OF_JAX), "it is a change to JAX")
    if only:
        refused = {name: others[_word(name)] for name in only if _word(name) in others}
        names = [name for name in only if name not in refused]
        return _with_values(names, seen, facts), refused, {}
    own = [name for name in EXPERIMENTS if name not in (*ONLY_KERAS, *ONLY_JAX, *OF_CAUSES)]
    if seen.framework == "keras":
        own = list(OF_KERAS)
    elif seen.framework == "jax":
        own = list(OF_JAX)
    reasons = _reasons(seen, facts, seconds)
    why_not = {name: reasons[name] for name in own if reasons.get(name)}
    slow = {
        "loader": seen.loader_wait_seconds,
        "evaluation": seen.evaluation_seconds,
        "save": seen.saving_seconds,
    }
    least = _LARGE_SHARE * seen.all_seconds
    large = {part for part, spent in slow.items() if (spent or 0.0) > least}
    names = [name for name in own if name not in why_not]
    names.sort(key=lambda name: experiment(name).part not in large)
    left_out = {name: why for name, why in why_not.items() if "--" in why}
    unsuitable = {name: why for name, why in why_not.items() if name not in left_out}
    if seen.framework == "jax":
        unsuitable |= others
    of_causes = [
        change
        for cause in causes
        for change in cause.changes
        if change not in why_not and not reasons.get(change)
    ]
    planned = dict.fromkeys([*of_causes, *_with_values(names, seen, facts)])
    return list(planned), left_out, unsuitable


def _word(change: str) -> str:
    """Return the name of a change without its value."""
    return change.partition("=")[0]


def why_rare(seen: Observed, times: int, seconds: float | None) -> str:
    """Return why leaving something out can't be measured; empty if it happens in enough steps."""
    if times >= IN_EVERY_STEP * seen.steps:
        return ""
    if not times:
        return "none observed"
    # A training in a single call has no known time.
    share = (seconds or 0.0) / (seen.all_seconds or 1.0)
    return f"{percent(share, 0)} of the time, but too rare to measure"


def _with_values(names: Iterable[str], seen: Observed, facts: Mapping[str, Any]) -> list[str]:
    """Return changes such as ``workers=2`` for their names; ``line`` is sampled instead."""
    cores = len(usable_core_numbers())
    now = seen.threads or cores
    values: dict[str, list[str]] = {
        "line": [],
        "workers": [f"workers={_workers()}"],
        "threads": [f"threads={number}" for number in (cores, 1) if number != now],
        "batch": [f"batch={_MORE_BATCH}"],
        "no-accumulation": [f"no-accumulation={facts.get('accumulates', 2)}"],
        "steps-per-execution": ["steps-per-execution=8"],
    }
    changes: list[str] = []
    for name in names:
        changes += values.get(name, [name])
    return changes


def _workers() -> int:
    return max(2, min(len(usable_core_numbers()), _MOST_WORKERS))


def _reasons(seen: Observed, facts: Mapping[str, Any], seconds: float) -> dict[str, str]:
    """Return why changes are not tried; empty or absent if they are."""
    workers = facts.get("workers")
    evaluation = why_rare(seen, seen.evaluations or 0, seen.evaluation_seconds)
    no_loader = "" if seen.framework == "keras" or workers is not None else "no DataLoader found"
    no_gpu = "" if seen.on_gpu else "no GPU"
    other = ""
    if seen.precision != "float32":
        other = f"it computes in {seen.precision or 'an unknown precision'}"
    late = ""
    if seconds < _SLOW_SECONDS:
        late = f"needs time to compile; use --seconds {_SLOW_SECONDS:g} or --only"
    no_workers = no_loader
    if facts.get("iterable"):
        no_workers = "the dataset is an IterableDataset"
    elif workers is not None and workers >= _workers():
        no_workers = f"the loader already has {workers} workers"
    no_accumulation = ""
    if facts.get("accumulates", 1) <= 1:
        no_accumulation = "the script doesn't accumulate gradients"
    is_outside = "outside" in seen.places or "eager" in seen.places
    of_torch = ""
    if "optimizer" not in facts:
        of_torch = "the weights are changed without an optimiser of PyTorch"
    elif not facts.get("handwritten"):
        of_torch = f"{facts['optimizer']} is a PyTorch optimiser"
    return {
        "workers": no_workers,
        "batch": no_loader,
        "no-accumulation": no_accumulation,
        "prefetch": no_loader or "the loader already has worker processes" * bool(workers),
        "pin": no_gpu or no_loader,
        "tf32": no_gpu or other,
        "fp16": other if seen.on_gpu else "meant for GPUs; use --only fp16 to try it anyway",
        "bf16": other,
        "mixed-bf16": other,
        "fp32": "" if seen.precision == "float64" else f"it computes in {seen.precision}",
        "fused": _flag(facts, "fused"),
        "foreach": _flag(facts, "foreach"),
        "torch-optimizer": of_torch,
        "no-evaluation": evaluation,
        "no-grad": evaluation if facts.get("graded") else "no evaluation records gradients",
        "no-saves": why_rare(seen, seen.saves, seen.saving_seconds),
        "no-sync": why_rare(seen, sum(seen.syncs.values()), seen.sync_seconds),
        "donate": "the weights are changed outside of jitted functions" * is_outside,
        "attention": "" if facts.get("attention") else "no unfused attention found",
        "channels-last": "" if facts.get("conv") else "no 2-D convolutions",
        "compile": late,
        "cuda-graphs": no_gpu or late,
    }


def _flag(facts: Mapping[str, Any], flag: str) -> str:
    """Return why an implementation of the optimiser can't be tried; empty if it can."""
    if flag not in facts:
        return f"{facts.get('optimizer', 'the optimiser')} has no {flag} implementation"
    return "already used" if facts[flag] else ""
