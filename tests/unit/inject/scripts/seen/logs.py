"""Logs a figure by the library in the first argument: numbers, tensors, and what is neither."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Linear(8, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
LIBRARY = sys.argv[1]
if LIBRARY == "tensorboardX":
    from tensorboardX import SummaryWriter

    log = SummaryWriter("logs").add_scalar
else:
    import mlflow

    mlflow.set_tracking_uri("file:mlruns")

    def log(name: str, value: object, step: int) -> None:
        mlflow.log_metrics({name: float(value)}, step=step)


kept = torch.zeros(())
for number in range(6):
    inputs = torch.randn(32, 8)
    loss = nn.functional.mse_loss(network(inputs), inputs[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept += 1
    log("Val_loss", kept if number % 2 else float(kept), number)
    log("rate", 0.5, number)
