"""Functions that JAX compiles again and again while it trains."""

from __future__ import annotations

from collections.abc import Mapping

from trainmark.analysis.causes.cause import Cause, Evidence, Found

_LEAST_SHARE = 0.05
"""Smallest share of the time that is worth naming."""
_FEWEST = 3
"""Fewest times that something is compiled again; a smaller last batch is compiled once."""


def _share(evidence: Evidence) -> float:
    """Return the share of the time in which JAX compiles after the first step."""
    seen = evidence.observed
    return min((seen.compile_seconds or 0.0) / (seen.all_seconds or 1.0), 1.0)


def _jits(evidence: Evidence) -> Mapping[str, int]:
    """Return how often functions with the same code were jitted after the first step, by line."""
    found: Mapping[str, int] = evidence.facts.get("jits", {})
    return {place: times for place, times in found.items() if times >= _FEWEST}


class JitInLoop(Cause):
    """A function is made and jitted in a loop."""

    name = "jit-in-loop"
    cure = "Call jax.jit once, outside of the loop, and pass what changes as an argument"
    source = "https://docs.jax.dev/en/latest/jit-compilation.html#jit-and-caching"
    changes = ("jit-once",)

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if compiling takes long and a line jits again and again."""
        jits = _jits(evidence)
        share = _share(evidence)
        if not jits or share < _LEAST_SHARE:
            return None
        place = max(jits, key=jits.__getitem__)
        seen = f"A function is jitted anew {jits[place]:,} times, and compiled again each time"
        return self.found(seen, place, share)


class NewShapes(Cause):
    """The step gets arrays of new shapes, for each of which it is compiled."""

    name = "new-shapes"
    cure = "Pad batches to a few shapes; JAX_EXPLAIN_CACHE_MISSES=1 says why JAX compiles"
    source = "https://docs.jax.dev/en/latest/debugging/slow_tracing_compilation.html"

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the step is compiled often, and no line jits again and again."""
        seen = evidence.observed
        share = _share(evidence)
        if seen.step_compiles < _FEWEST or _jits(evidence) or share < _LEAST_SHARE:
            return None
        text = f"JAX compiled the step {seen.step_compiles:,} more times, for other shapes or types"
        return self.found(text, seen.places.get("step"), share)


CAUSES = (JitInLoop, NewShapes)
