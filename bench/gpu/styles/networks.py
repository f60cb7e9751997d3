"""The network of a candidate: trainmark's own modules, or nanoGPT's `model.py` from a checkout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gpu.subjects import Subject
from trainmark.backends.torch import losses, network
from trainmark.workload.layers import Attention, Dropout, Repeat, TokenEmbedding, every

LossOf = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Takes a batch, returns its outputs and their mean loss."""


def ours(subject: Subject, device: torch.device) -> nn.Module:
    """Build the workload's network, with its initial weights."""
    built = network.build(subject.model, subject.model.layers).to(device)
    network.write(built, subject.model, subject.weights())
    return built


def loss_of(subject: Subject, forward: Callable[[Tensor], Tensor], device: torch.device) -> LossOf:
    """Return a forward pass in bf16 with a loss in fp32, as trainmark's styles compute it."""
    criterion = losses.build(subject.workload.loss, sequences=subject.workload.is_text)

    def compute(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            outputs = forward(x)
        return outputs, criterion(outputs.float(), y)

    return compute


def nanogpt(checkout: Path, subject: Subject, device: torch.device) -> nn.Module:
    """Build the same network from the ``model.py`` of a checkout of nanoGPT.

    Args:
        checkout: its folder.
        subject: a GPT.
        device: where it is trained.
    """
    sys.path.insert(0, str(checkout))
    import model  # type: ignore[import-not-found]

    built: nn.Module = model.GPT(model.GPTConfig(**nanogpt_sizes(subject))).to(device)
    return built


def nanogpt_sizes(subject: Subject) -> dict[str, Any]:
    """Return the sizes of a GPT by nanoGPT's names for them."""
    layers = list(every(subject.workload.model))
    table = next(layer for layer in layers if isinstance(layer, TokenEmbedding))
    attention = next(layer for layer in layers if isinstance(layer, Attention))
    blocks = next(layer for layer in layers if isinstance(layer, Repeat))
    dropout = next((layer.rate for layer in layers if isinstance(layer, Dropout)), 0.0)
    return {
        "block_size": subject.units_per_example,
        "vocab_size": table.vocabulary,
        "n_layer": blocks.times,
        "n_head": attention.heads,
        "n_embd": table.width,
        "dropout": dropout,
        "bias": False,
    }


def loss_of_nanogpt(forward: Callable[..., tuple[Tensor, Tensor]], device: torch.device) -> LossOf:
    """Return nanoGPT's forward pass, which computes its loss itself."""

    def compute(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            return forward(x, y)

    return compute
