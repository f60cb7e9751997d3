"""The training loop of a PyTorch tutorial without trainmark: the baseline of `overhead.py`.

    python bench/bare_torch.py mnist-mlp128 FOLDER-WITH-MNIST EPOCHS

It prints the seconds of each epoch as JSON. It does the same work as trainmark's `idiomatic` style
on these two workloads: per-image transforms in the main process, a shuffling DataLoader, every
batch's loss and hits kept.
"""

import argparse
import gzip
import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, folder: Path, scale: float) -> None:
        self.images = torch.frombuffer(
            bytearray(payload(folder, "train-images-idx3-ubyte")[16:]), dtype=torch.uint8
        )
        self.images = self.images.view(-1, 1, 28, 28)
        self.labels = list(payload(folder, "train-labels-idx1-ubyte")[8:])
        self.scale = scale

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.images[index].to(torch.float32).div_(self.scale), self.labels[index]


def payload(folder: Path, name: str) -> bytes:
    plain = folder / name
    return plain.read_bytes() if plain.exists() else gzip.open(folder / f"{name}.gz").read()


def mlp128() -> tuple[nn.Module, torch.optim.Optimizer, nn.Module, DataLoader, float]:
    network = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    for parameter in network.parameters():
        nn.init.uniform_(parameter, -0.01, 0.01) if parameter.ndim > 1 else nn.init.zeros_(
            parameter
        )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-5)
    return network, optimizer, nn.functional.cross_entropy, 100, 256.0


def clipped(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    true = nn.functional.log_softmax(logits, dim=1).gather(1, labels.unsqueeze(1)).squeeze(1)
    return -true.clamp(-16.118095650958319, -1.0000000500000033e-07).mean()


def mlp512() -> tuple[nn.Module, torch.optim.Optimizer, nn.Module, DataLoader, float]:
    network = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(512, 10),
    )  # fmt: skip
    for parameter in network.parameters():
        nn.init.xavier_uniform_(parameter) if parameter.ndim > 1 else nn.init.zeros_(parameter)
    optimizer = torch.optim.RMSprop(network.parameters(), lr=0.001, alpha=0.9, eps=1e-8)
    return network, optimizer, clipped, 128, 255.0


def main(workload: str, folder: Path, epochs: int) -> None:
    torch.manual_seed(1)
    network, optimizer, criterion, batch, scale = {"mnist-mlp128": mlp128, "mnist-mlp512": mlp512}[
        workload
    ]()
    digits = Digits(folder, scale)
    seconds = []
    for _ in range(epochs):
        start = time.perf_counter()
        loader = DataLoader(digits, batch_size=batch, shuffle=True)
        losses = torch.zeros(len(loader))
        hits = torch.zeros(len(loader))
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            outputs = network(x)
            loss = criterion(outputs, y)
            loss.backward()
            optimizer.step()
            losses[step] = loss.detach()
            hits[step] = (outputs.argmax(dim=1) == y).sum()
        seconds.append(time.perf_counter() - start)
    json.dump(
        {
            "seconds": seconds,
            "loss": float(losses.mean()),
            "accuracy": float(hits.sum()) / len(digits),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", choices=["mnist-mlp128", "mnist-mlp512"])
    parser.add_argument("mnist", type=Path)
    parser.add_argument("epochs", type=int)
    options = parser.parse_args()
    main(options.workload, options.mnist, options.epochs)
