"""A script that starts its ranks itself, without environment variables."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(rank: int) -> None:
    """Train one rank."""
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=2)
    model = DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    torch.multiprocessing.spawn(train, nprocs=2)
