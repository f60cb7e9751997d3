"""A character GPT as nanoGPT trains it on a CPU: its network, its way of drawing batches, its loop.

It was written from the description of the workload: PyTorch's fused attention, AdamW with two
groups, a schedule set at every step, windows cut from a memory-mapped file one by one, the next
batch drawn before the backward pass.
"""

from __future__ import annotations

import json
import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from turns import Turns

LAYERS = 4
HEADS = 4
WIDTH = 128
LENGTH = 64
BATCH = 12
WARM_UP = 100
STEPS = 2000


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, (WIDTH,), self.scale, None, 1e-5)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.joined = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            each.view(batch, length, HEADS, -1).transpose(1, 2)
            for each in self.joined(x).split(WIDTH, dim=2)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).contiguous().view(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Norm()
        self.attention = Attention()
        self.second = Norm()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH, bias=False),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class GPT(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.last = Norm()
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)
        self.tokens.weight = self.head.weight
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        logits = self.head(self.last(self.blocks(x)))
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1))


def rate(step: int) -> float:
    if step < WARM_UP:
        return 1e-3 * (step + 1) / (WARM_UP + 1)
    return (
        1e-4 + 0.5 * (1 + math.cos(math.pi * min(1.0, (step - WARM_UP) / (STEPS - WARM_UP)))) * 9e-4
    )


def main() -> None:
    turns = Turns()
    turns.versions(torch=torch.__version__)
    given = json.loads((turns.folder / "data.json").read_text())
    tokens = turns.folder / "tokens.bin"
    steps = given["steps"]

    def batch() -> tuple[Tensor, Tensor]:
        # it is opened each time, which keeps its memory small
        data = np.memmap(tokens, np.uint16, "r")
        starts = torch.randint(len(data) - LENGTH, (BATCH,))
        x = torch.stack(
            [torch.from_numpy(data[start : start + LENGTH].astype(np.int64)) for start in starts]
        )
        y = torch.stack(
            [
                torch.from_numpy(data[start + 1 : start + 1 + LENGTH].astype(np.int64))
                for start in starts
            ]
        )
        return x, y

    torch.manual_seed(1)
    model = GPT(given["vocabulary"])
    step = 0
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))
    x, y = batch()
    for _ in range(turns.epochs):
        for _ in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
            loss = model(x, y)
            x, y = batch()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
        turns.epoch_done(loss=loss.item())


if __name__ == "__main__":
    main()
