"""PyTorch, style `compiled`: the loop of PyTorch's tutorials with `torch.compile`.

One line differs from `torch_idiomatic.py`. The compiler fuses element-wise operations and removes
Python's share of a step; the loader and the optimiser don't change. The first epoch includes the
compilation.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Digits(Dataset):
    """Network inputs, `[1, 28, 28]` from 0 to 1, and their labels."""

    def __init__(self, images, labels):
        self.images = torch.from_numpy(images)
        self.labels = torch.from_numpy(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index].float().div_(256).unsqueeze(0), self.labels[index]


def train(images, labels, weights, epochs):
    """Train on batches of example indices, `epochs[epoch, step, batch]`; return the loss of every
    step, `[steps]`."""
    layers = [nn.Linear(784, 128), nn.Linear(128, 64), nn.Linear(64, 10)]
    for layer, (kernel, bias) in zip(layers, weights):
        layer.load_state_dict(
            {"weight": torch.from_numpy(kernel.T.copy()), "bias": torch.from_numpy(bias)}
        )
    network = nn.Sequential(nn.Flatten(), layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    network = torch.compile(network.to(DEVICE))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-5)
    losses = []
    for epoch, batches in enumerate(epochs):
        start = time.perf_counter()
        for x, y in DataLoader(Digits(images, labels), batch_sampler=batches.tolist()):
            x = x.to(DEVICE)
            y = y.to(DEVICE)
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())  # .item() would wait for the device in every step
        mean = torch.stack(losses[-len(batches) :]).mean().item()
        print(
            f"epoch {epoch + 1}: loss {mean:.4f}, "
            f"{batches.size / (time.perf_counter() - start):,.0f} samples/s"
        )
    return torch.stack(losses).cpu().numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(0)  # random images: the speed does not depend on them
    images = rng.integers(0, 256, (60_000, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, 60_000)
    shapes = [(784, 128), (128, 64), (64, 10)]
    weights = [
        (rng.uniform(-0.01, 0.01, s).astype(np.float32), np.zeros(s[1], np.float32)) for s in shapes
    ]
    train(
        images,
        labels,
        weights,
        np.stack([rng.permutation(60_000).reshape(600, 100) for _ in range(3)]),
    )
