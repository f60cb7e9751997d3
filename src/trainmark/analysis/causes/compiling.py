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
    """Return how often each line jitted a new function with the same code after the first step."""
    found: Mapping[str, int] = evidence.facts.get("jits", {})
    return {place: times for place, times in found.items() if times >= _FEWEST}


class JitInLoop(Cause):
    """A new function is created and jitted in each iteration of a loop."""

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
        seen = f"jax.jit gets a new function {jits[place]:,} times, and compiles each of them"
        return self.found(seen, place, share)


class CompiledAgain(Cause):
    """The step is compiled again and again, as for inputs of new shapes."""

    name = "compiled-again"
    cure = (
        "JAX_EXPLAIN_CACHE_MISSES=1 says why: new shapes (pad batches to a few of them), other "
        "types or static arguments, or a function that is created anew"
    )
    source = "https://docs.jax.dev/en/latest/debugging/slow_tracing_compilation.html"

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the step is compiled often, and no line jits again and again."""
        seen = evidence.observed
        share = _share(evidence)
        if seen.step_compiles < _FEWEST or _jits(evidence) or share < _LEAST_SHARE:
            return None
        text = f"JAX compiled the step {seen.step_compiles:,} times after the first time"
        return self.found(text, seen.places.get("step"), share)


CAUSES = (JitInLoop, CompiledAgain)
