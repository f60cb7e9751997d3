"""A script that is slow in two places. `trainmark explain -- python slow.py` finds them.

It generates its images, so it needs no data. `--evaluate-every 100` and `--prepare` fix it.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

CLASSES = 10
SIDE = 16


class Drawn(Dataset):
    """One noisy pattern per class, normalised pixel by pixel when an example is read."""

    def __init__(self, examples: int, seed: int, *, prepared: bool) -> None:
        generator = torch.Generator().manual_seed(seed)
        patterns = torch.randn(CLASSES, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
        self.labels = torch.randint(CLASSES, (examples,), generator=generator)
        noise = 2 * torch.randn(examples, SIDE, SIDE, generator=generator)
        self.images = (patterns[self.labels] + noise).unsqueeze(1)
        self.prepared = prepared
        if prepared:
            self.images = self.images.clamp(-3, 3) / 3

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = self.images[index]
        if not self.prepared:
            image = torch.tensor(
                [[min(max(pixel, -3.0), 3.0) / 3 for pixel in row] for row in image[0].tolist()]
            )
            image = image.unsqueeze(0)
        return image, self.labels[index]


@torch.no_grad()
def accuracy(network: nn.Module, test: Dataset) -> float:
    """Return the share of test examples that are classified correctly."""
    network.eval()
    right = sum((network(x).argmax(1) == y).sum() for x, y in DataLoader(test, 250))
    network.train()
    return float(right) / len(test)


def main() -> None:
    """Train, and evaluate every ``--evaluate-every`` steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--evaluate-every", type=int, default=1, metavar="STEPS")
    parser.add_argument(
        "--prepare", action="store_true", help="normalise all images once, in advance"
    )
    options = parser.parse_args()
    torch.manual_seed(1)
    training = Drawn(8_000, 1, prepared=options.prepare)
    test = Drawn(1_000, 2, prepared=True)
    loader = DataLoader(training, 64, shuffle=True)
    layers = nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten()
    network = nn.Sequential(*layers, nn.Linear(32 * 36, CLASSES))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for epoch in range(options.epochs):
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(x), y)
            loss.backward()
            optimizer.step()
            if step % options.evaluate_every == 0:
                print(
                    f"epoch {epoch}, step {step}: accuracy {accuracy(network, test):.2%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
