"""How ``fast`` runs a step on a GPU: the fastest of the candidates that were measured.

One row for each workload and precision. A workload without a row is *untuned*: its step is eager in
a CUDA graph, which was never slower than a plain loop where it was measured. A new row needs the
speed of every candidate on one GPU, each of them doing the same recorded work (``bench/gpu``
measures them).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trainmark.errors import UsageError
from trainmark.workload.precision import Precision

STEP_VARIABLE = "TRAINMARK_TORCH_FAST"
"""If set to ``eager`` or ``compiled``, this variable overrides the table, on any device including
the CPU. Ranks of a distributed training ignore it."""

Step = Literal["eager", "compiled"]
"""``compiled``: forward and backward pass through ``torch.compile``. On CUDA, both are captured in
a graph."""


EAGER_IN_A_GRAPH = "eager in a graph"
"""Name of the candidate without compiling, whose step is captured in a CUDA graph."""
FAST = "trainmark fast"
"""Name of the candidate that the style ``fast`` chooses."""


@dataclass(frozen=True)
class Evidence:
    """One measurement of all candidates.

    Args:
        device: the GPU.
        torch: version of PyTorch.
        date: day of the measurement.
        commit: commit of trainmark at which ``fast`` was measured.
        tokens_per_second: by candidate, in millions; median of at least ten stretches, 2.5 s in
            total.
    """

    device: str
    torch: str
    date: str
    commit: str
    tokens_per_second: Mapping[str, float]

    def gain(self) -> float:
        """Return how many times as fast ``fast`` is as an eager step in a graph.

        The step of ``fast`` is compiled.
        """
        return self.tokens_per_second[FAST] / self.tokens_per_second[EAGER_IN_A_GRAPH]


@dataclass(frozen=True)
class Row:
    """What was chosen for a workload, and why."""

    step: Step
    evidence: Evidence


@dataclass(frozen=True)
class Choice:
    """How a step runs.

    Args:
        step: eager or compiled.
        by: ``measured`` for a row of the table, ``untuned`` without one, ``default``
            where steps are not captured in a graph, as on a CPU (docs/results/styles), or the
            variable that decided.
        gain: measured gain of a compiled step in a graph over an eager one; None if it was not
            measured.
    """

    step: Step
    by: str
    gain: float | None = None


# One machine only (a virtual machine with 16 cores of an Intel Xeon). The candidates do the same
# recorded work as ``fast``: all gather the batch, count hits and keep the loss.
_H200 = ("NVIDIA H200", "2.11.0+cu130", "2026-11-27", "7b8db838")

TABLE: Mapping[tuple[str, Precision], Row] = {
    ("shakespeare-gpt-10m", "bf16"): Row(
        "compiled",
        Evidence(
            *_H200,
            {
                "eager": 1.382,
                "torch.compile": 1.862,
                EAGER_IN_A_GRAPH: 2.369,
                'torch.compile, mode="reduce-overhead"': 3.008,
                "compiled with its optimiser, in a graph": 3.055,
                "compiled in a graph": 3.058,
                FAST: 3.077,
            },
        ),
    ),
    ("gpt2-124m", "bf16"): Row(
        "compiled",
        Evidence(
            *_H200,
            {
                EAGER_IN_A_GRAPH: 0.342,
                "compiled in a graph": 0.380,
                FAST: 0.464,
            },
        ),
    ),
}


def choose(workload: str, precision: Precision, *, captures: bool) -> Choice:
    """Choose how a step runs.

    Args:
        workload: name of the workload; a workload of another size has another name.
        precision: precision of the arithmetic.
        captures: whether steps are captured in a graph; rows hold for captured steps only.

    Raises:
        UsageError: :data:`STEP_VARIABLE` has an unknown value.
    """
    row = TABLE.get((workload, precision))
    gain = row.evidence.gain() if row else None
    asked = os.environ.get(STEP_VARIABLE)
    match asked:
        case None | "":
            pass
        case "eager" | "compiled":
            return Choice(asked, STEP_VARIABLE, gain)
        case _:
            raise UsageError(
                f"{STEP_VARIABLE} has an unknown value",
                expected="eager or compiled, or unset",
                found=repr(asked),
            )
    if not captures:
        return Choice("eager", "default")
    return Choice(row.step, "measured", gain) if row else Choice("eager", "untuned")
