"""A typical MNIST script with PyTorch: arguments, a network, a loop of training and testing.

    python train.py --device cpu --epochs 2
    trainmark measure --device cpu,cuda:0 -- python train.py --device {device} --seed {seed}

The three lines for trainmark are marked; without trainmark they do nothing.
"""

import argparse
import gzip
import os
import struct
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from trainmark import hook  # line 1 of 3


class Network(nn.Module):
    """Two convolutions, two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.dense = nn.Sequential(
            nn.Flatten(), nn.Dropout(0.25), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits, ``[batch, 10]``, of images ``[batch, 1, 28, 28]``."""
        return self.dense(self.convolutions(x))


def read_idx(path: Path) -> np.ndarray:
    """Read an IDX file of bytes, compressed or not."""
    packed = path.with_name(path.name + ".gz")
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    dimensions = data[3]
    shape = struct.unpack_from(f">{dimensions}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def split(folder: Path, name: str, most: int) -> TensorDataset:
    """Return the first ``most`` examples of a split: images as floats, and labels."""
    images, labels = (
        read_idx(folder / f"{name}-{part}") for part in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    x = torch.from_numpy(images[:most].copy()).float().div(255).sub(0.1307).div(0.3081).unsqueeze(1)
    return TensorDataset(x, torch.from_numpy(labels[:most].copy()).long())


def train(
    network: nn.Module,
    loader: DataLoader,
    optimizer: torch.optim.Optimizer,
    device: str,
    pause: float,
) -> float:
    """Train one epoch and return the mean loss."""
    network.train()
    total = torch.zeros((), device=device)
    for x, y in loader:
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach()
        until = time.perf_counter() + pause
        while time.perf_counter() < until:
            pass
    return float(total) / len(loader)


@torch.no_grad()
def test(network: nn.Module, loader: DataLoader, device: str) -> float:
    """Return the accuracy."""
    network.eval()
    right = sum((network(x.to(device)).argmax(1) == y.to(device)).sum() for x, y in loader)
    return float(right) / len(loader.dataset)


def main() -> None:
    """Train and test."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("TRAINMARK_DATA", ".")) / "mnist"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--most", type=int, default=60_000, help="maximum examples per split")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds to waste per step, to simulate a slowdown"
    )
    parser.add_argument("--threads", type=int, help="CPU threads; PyTorch's default if not given")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    training, testing = (split(options.data, name, options.most) for name in ("train", "t10k"))
    loader = DataLoader(training, options.batch, shuffle=True)
    test_loader = DataLoader(testing, 1000)
    network = Network().to(options.device)
    optimizer = torch.optim.SGD(network.parameters(), options.rate, momentum=0.9)
    for epoch in range(1, options.epochs + 1):
        loss = train(network, loader, optimizer, options.device, options.pause)
        hook.epoch(loss=loss, examples=len(training), steps=len(loader))  # line 2 of 3
        accuracy = test(network, test_loader, options.device)
        hook.test(accuracy=accuracy)  # line 3 of 3
        print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {accuracy:.2%}", flush=True)


if __name__ == "__main__":
    main()
