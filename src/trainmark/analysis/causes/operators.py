"""Many small operators, each of which costs more to start than to compute."""

from __future__ import annotations

from trainmark.analysis.causes.cause import Cause, Evidence, Found, InKnownFunctions

_MANY_CELLS = 4
"""Calls of a recurrent cell in each step from which on they are a loop over time."""
_OPTIMISERS = (
    "https://github.com/pytorch/pytorch/blob/0126d60e14cce8fd21075d87da9531e34b861d13/"
    "docs/source/optim.md"
)


class CellLoop(Cause):
    """A recurrent network is written as a loop over the steps of a sequence."""

    name = "loop-over-time"
    cure = "Use nn.LSTM, nn.GRU or nn.RNN, which loop over the whole sequence in compiled code"
    source = "https://pytorch.org/blog/optimizing-cuda-rnn-with-torchscript/"
    is_removed = False

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if a cell is called often in each step."""
        calls = evidence.calls("cell")
        if calls is None or calls.usual < _MANY_CELLS:
            return None
        share = self._share(evidence, calls.share)
        return self.found(
            f"A recurrent cell is called {calls.usual} times in each step",
            next(iter(calls.places), None),
            share,
        )

    @staticmethod
    def _share(evidence: Evidence, of_calls: float) -> float:
        """Return the share of the calls with that of their backward pass.

        Their share of the backward pass is taken to be that of the forward pass.
        """
        seen = evidence.observed
        forward = (seen.forward_seconds or 0.0) / seen.all_seconds
        backward = (seen.backward_seconds or 0.0) / seen.all_seconds
        if not forward:
            return of_calls
        return min(of_calls, forward) * (1 + backward / forward)


class HandwrittenOptimizer(Cause):
    """The weights are updated by Python code."""

    name = "handwritten-optimizer"
    cure = "Use one of torch.optim"
    source = _OPTIMISERS
    changes = ("torch-optimizer",)

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the optimiser is not one of PyTorch."""
        if not evidence.facts.get("handwritten"):
            return None
        name = evidence.facts["optimizer"]
        place = evidence.observed.places.get("optimizer")
        return self.found(f"The optimiser {name} is written in Python", place)


class WeightAverage(InKnownFunctions):
    """An average of the weights is updated one weight at a time."""

    name = "weight-average"
    functions = ("weight average",)
    seen = "Averaging the weights takes long"
    cure = (
        "Average them by torch._foreach functions, as AveragedModel(multi_avg_fn=...) does, or "
        "every few steps"
    )
    source = "https://github.com/huggingface/diffusers/pull/7685"
    is_removed = False


CAUSES = (CellLoop, HandwrittenOptimizer, WeightAverage)
