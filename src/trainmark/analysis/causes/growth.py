"""What gets larger with every step, so that steps take longer, or memory ends."""

from __future__ import annotations

import dataclasses
import re
from typing import ClassVar

from trainmark.analysis.causes.cause import Cause, Evidence, Found, Growing

_FAQ = (
    "https://github.com/pytorch/pytorch/blob/61018bab7a453050a68928e2c104c4fd6c36c075/"
    "docs/source/notes/faq.md"
)


class _GrowingVariable(Cause):
    """A variable grows."""

    kind: ClassVar[str]
    seen: ClassVar[str]

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause with the variable that grows fastest."""
        every = [each for each in evidence.growing if each.kind == self.kind]
        every = [each for each in every if self._matters(each, evidence)]
        largest = max(every, key=lambda each: each.gain, default=None)
        if largest is None:
            return None
        found = self.found(self.seen.format(name=largest.name))
        return dataclasses.replace(found, variable=largest)

    def _matters(self, _variable: Growing, _evidence: Evidence) -> bool:
        return True


class GrowingGraph(_GrowingVariable):
    """A tensor remembers the graphs of all steps, as ``total += loss`` does."""

    name = "growing-graph"
    kind = "graph"
    seen = "{name} keeps the graph of every step, which takes memory, and time if it is used"
    cure = "Add loss.item() or loss.detach() instead, or detach it after each step"
    source = _FAQ


class KeptGraphs(_GrowingVariable):
    """A list keeps the graphs of all steps, as ``losses.append(loss)`` does."""

    name = "kept-graphs"
    kind = "list of graphs"
    seen = "{name} keeps the graph of every step, which takes memory"
    cure = "Keep loss.item() or loss.detach() instead"
    source = _FAQ


class _GrowingData(_GrowingVariable):
    """Something gets longer, and the line that gets slower uses it."""

    seen = "{name} gets longer with every step"

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause with the share of the line that gets slower."""
        found = super().find(evidence)
        place = evidence.grows_at
        if found is None or place is None:
            return None
        share = evidence.facts.get("lines", {}).get(place)
        return dataclasses.replace(found, seen=f"{found.seen} and is used in {place}", share=share)

    def _matters(self, variable: Growing, evidence: Evidence) -> bool:
        text = evidence.texts.get(evidence.grows_at or "", "")
        return re.search(rf"(?<![\w.]){re.escape(variable.name)}(?!\w)", text) is not None


class GrowingTensor(_GrowingData):
    """A tensor gets longer, as by ``torch.cat`` in each step."""

    name = "growing-tensor"
    kind = "tensor"
    cure = "Make room for all of it once, or collect parts in a list and join them at the end"
    source = "https://github.com/pytorch/audio/pull/1850"


class GrowingList(_GrowingData):
    """A list gets longer, and is gone through in each step."""

    name = "growing-list"
    kind = "list"
    cure = "Keep what is needed of it, such as a running sum, or a deque of the last elements"
    source = "https://github.com/uber/petastorm/pull/414"


CAUSES = (GrowingGraph, KeptGraphs, GrowingTensor, GrowingList)
