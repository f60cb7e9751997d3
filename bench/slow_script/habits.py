"""A training script with one bad habit at a time, or with none.

    python bench/slow_script/habits.py --slow anomaly

bench/slow_script/measure.py says what `trainmark explain` finds of each. The line that is to change
ends with a comment that names the habit. With --like the script has the size of one with that
habit, but not the habit.
"""

import argparse
import copy
import cProfile
import gc
import logging
import os

import torch
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, TensorDataset

PLANTS = {
    "none": "nothing",
    "anomaly": "anomaly detection was left on",
    "gc": "Python's garbage is collected after every step",
    "restarted-workers": "worker processes start again in each of its short epochs",
    "cell-loop": "an LSTM is a loop over time steps in Python",
    "checkpointed": "activations are computed twice, though there is memory for them",
    "table": "a row of a pandas table is read for each example",
    "growing-tensor": "a part of all inputs is kept in one tensor, for a running mean",
    "growing-list": "all losses are kept in a list, for a running mean",
    "profiler": "Python's profiler was left on",
    "logging": "weights are formatted and logged in every step",
    "deepcopy": "the network is copied after every step, in case it is the best one",
    "average": "an average of the weights is updated after every step",
}
SHORT = 1_024
"""Examples of an epoch that is short."""


class Table(Dataset):
    """Takes a row of a table for each example."""

    def __init__(self, x: torch.Tensor, labels: torch.Tensor) -> None:
        import pandas

        self.table = pandas.DataFrame(x.numpy())
        self.table["label"] = labels.numpy()

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        row = self.table.iloc[index]  # slow: table
        return torch.tensor(row.values[:-1], dtype=torch.float32), torch.tensor(int(row["label"]))


class Cells(nn.Module):
    """Reads an example as 28 time steps of 28 values."""

    def __init__(self, is_slow: bool) -> None:
        super().__init__()
        self.is_slow = is_slow
        self.cell = nn.LSTMCell(28, 128)
        self.layer = nn.LSTM(28, 128, batch_first=True)
        self.head = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = x.view(len(x), 28, 28)
        if not self.is_slow:
            return self.head(self.layer(steps)[0][:, -1])
        state = torch.zeros(len(x), 128), torch.zeros(len(x), 128)
        for at in range(28):
            state = self.cell(steps[:, at], state)  # slow: cell-loop
        return self.head(state[0])


class Dense(nn.Module):
    """A few layers, whose activations may be computed again in the backward pass."""

    def __init__(self, width: int, layers: int, is_checkpointed: bool) -> None:
        super().__init__()
        self.first = nn.Linear(784, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
            for _ in range(layers)
        )
        self.last = nn.Linear(width, 10)
        self.is_checkpointed = is_checkpointed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = self.called(block, x)
        return self.last(x)

    def called(self, block: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """Compute a block."""
        if self.is_checkpointed:
            return checkpoint(block, x, use_reentrant=False)  # slow: checkpointed
        return block(x)


def network(slow: str, shape: str) -> nn.Module:
    """Build the network of a habit."""
    if shape == "cell-loop":
        return Cells(slow == shape)
    if shape in ("deepcopy", "average", "logging"):
        return Dense(256, 8, False)
    if shape == "profiler":
        return Dense(64, 24, False)
    if shape == "growing-list":
        return Dense(64, 1, False)
    return Dense(512, 2, slow == "checkpointed")


def loader_of(slow: str, shape: str, x: torch.Tensor, labels: torch.Tensor) -> DataLoader:
    """Build the loader of a habit."""
    if slow == "table":
        return DataLoader(Table(x, labels), 128, shuffle=True, drop_last=True)
    if shape == "restarted-workers":
        data = TensorDataset(x[:SHORT], labels[:SHORT])
        keeps = slow != shape
        return DataLoader(data, 128, num_workers=2, persistent_workers=keeps)
    size = 32 if shape == "deepcopy" else 128
    return DataLoader(TensorDataset(x, labels), size, shuffle=True, drop_last=True)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slow", choices=PLANTS, default="none")
    parser.add_argument("--like", choices=PLANTS, help="without the habit, but of the same size")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    slow = options.slow
    shape = options.like or slow
    torch.manual_seed(options.seed)
    patterns = torch.randn(10, 784, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(10, (20_000,))
    x = 0.15 * patterns[labels] + torch.randn(20_000, 784)
    loader = loader_of(slow, shape, x, labels)
    model = network(slow, shape)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    if slow == "anomaly":
        torch.autograd.set_detect_anomaly(True)  # slow: anomaly
    if slow == "profiler":
        profiler = cProfile.Profile()
        profiler.enable()  # slow: profiler
    logging.basicConfig(filename=os.devnull, level=logging.INFO)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    kept = torch.empty(0, 196)
    losses: list[torch.Tensor] = []
    best = None
    step = 0
    for _ in range(options.epochs):
        for inputs, targets in loader:  # slow: restarted-workers
            optimizer.zero_grad()
            logits = model(inputs)
            loss = functional.cross_entropy(logits, targets)
            loss.backward()
            optimizer.step()
            step += 1
            if slow == "gc":
                gc.collect()  # slow: gc
            elif slow == "growing-tensor":
                kept = torch.cat([kept, inputs[:, :196]])  # slow: growing-tensor
                kept.mean()
            elif slow == "deepcopy":
                best = copy.deepcopy(model)  # slow: deepcopy
            elif slow == "average":
                average.update_parameters(model)  # slow: average
            elif slow == "logging":
                logging.info("weights %s", model.first.weight)  # slow: logging
            elif slow == "growing-list":
                losses.append(loss.detach())
                torch.stack(losses).mean()  # slow: growing-list
            if step % 100 == 0:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)
    del best


if __name__ == "__main__":
    main()
