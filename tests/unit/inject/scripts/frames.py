"""Prints who has called the script's own functions, and where warnings and errors come from."""

import inspect
import io
import traceback
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.simplefilter("always")


def callers(what: str) -> None:
    """Print every function that is being executed."""
    stack = inspect.stack()[1:]
    print(what, [(Path(each.filename).name, each.lineno, each.function) for each in stack])


class Data(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 0:
            callers("data")
        return torch.full((4,), float(index))

    def __getstate__(self) -> dict:
        callers("saved")
        return {}


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        callers("forward")
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        callers("backward")
        return 2 * gradient


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        callers("module")
        return Double.apply(self.layer(x))


class Descent(torch.optim.SGD):
    def __init__(self, *args, **more) -> None:
        callers("optimizer")
        super().__init__(*args, **more)

    def step(self, closure=None):
        callers("step")
        return super().step(closure)


net = Net()
weight = net.layer.weight
optimizer = Descent([weight, weight], lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for _ in range(2):
    for batch in DataLoader(Data(), batch_size=4):
        optimizer.zero_grad()
        scaler.scale(net(batch).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
torch.save(Data(), io.BytesIO())
for wrong in (
    lambda: torch.ones(2).item(),
    lambda: bool(torch.ones(2)),
    lambda: f"{torch.ones(1):d}",
    lambda: torch.ones(1).backward(),
    lambda: torch.save(0, "/nowhere/x"),
    lambda: next(iter(DataLoader(Data(), sampler=[99], collate_fn=len))),
):
    try:
        wrong()
    except Exception:  # noqa: BLE001
        traceback.print_exc()
float(torch.ones(1, requires_grad=True))
