"""A script in the style of PyTorch's first example: a loader, epochs, an evaluation after each, a
checkpoint."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 128)
        self.drop = nn.Dropout(0.2)
        self.second = nn.Linear(128, 10)

    def forward(self, x):
        return self.second(self.drop(torch.relu(self.first(x))))


def train(model, loader, optimizer, epoch):
    model.train()
    for index, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if index % 5 == 0:
            print(epoch, index, repr(loss.item()))


def test(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.cross_entropy(model(x), y, reduction="sum").item()
    print("test", total)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save", default="")
    options = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(640, 64)
    y = torch.randint(0, 10, (640,))
    loader = DataLoader(
        TensorDataset(x, y), batch_size=32, shuffle=True, num_workers=options.workers
    )
    held_out = DataLoader(TensorDataset(x[:200], y[:200]), batch_size=100)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(options.epochs):
        train(model, loader, optimizer, epoch)
        test(model, held_out)
    if options.save:
        torch.save(model.state_dict(), options.save)


if __name__ == "__main__":
    main()
