"""The ways to run a training step that are compared."""

from __future__ import annotations

from dataclasses import dataclass

OURS = "trainmark fast"


@dataclass(frozen=True)
class Candidate:
    """One way to run a step.

    Args:
        name: name for the table.
        compiled: whether `torch.compile` compiles the network.
        mode: mode of `torch.compile`; None is its default.
        captured: whether the whole step is captured in our own CUDA graph.
        compiled_optimizer: whether `torch.compile` compiles the update, too.
        channels_last: whether images have their channels last; None without images.
        nanogpt: whether the network is that of nanoGPT's `model.py`.
    """

    name: str
    compiled: bool = False
    mode: str | None = None
    captured: bool = False
    compiled_optimizer: bool = False
    channels_last: bool | None = None
    nanogpt: bool = False


MOST_PROMISING = 2
"""Number of candidates that come before those with nanoGPT's model; the others compile for a minute
on a GPU."""


def candidates(*, images: bool, nanogpt: bool) -> list[Candidate]:
    """List the candidates, the most promising ones first.

    Args:
        images: whether the workload has images, which can be stored in two ways.
        nanogpt: whether a checkout of nanoGPT is available.
    """
    layouts: tuple[bool | None, ...] = (True, False) if images else (None,)
    found = [each for layout in layouts for each in _of_layout(layout)]
    if nanogpt:
        found[MOST_PROMISING:MOST_PROMISING] = [
            Candidate("nanoGPT's model, compiled", compiled=True, nanogpt=True),
            Candidate(
                "nanoGPT's model, compiled in a graph", compiled=True, captured=True, nanogpt=True
            ),
            Candidate("nanoGPT's model, eager", nanogpt=True),
        ]
    return found


def _of_layout(layout: bool | None) -> list[Candidate]:
    where = {True: ", channels last", False: ", contiguous", None: ""}[layout]
    found = [
        Candidate(
            f"compiled in a graph{where}", compiled=True, captured=True, channels_last=layout
        ),
        Candidate(f"eager in a graph{where}", captured=True, channels_last=layout),
        Candidate(f"eager{where}", channels_last=layout),
        Candidate(f"compiled{where}", compiled=True, channels_last=layout),
    ]
    if layout is not False:
        reduced = Candidate(
            f"compiled, reduce-overhead{where}",
            compiled=True,
            mode="reduce-overhead",
            channels_last=layout,
        )
        both = Candidate(
            f"compiled with its optimiser, in a graph{where}",
            compiled=True,
            captured=True,
            compiled_optimizer=True,
            channels_last=layout,
        )
        found += [reduced, both]
    return found
