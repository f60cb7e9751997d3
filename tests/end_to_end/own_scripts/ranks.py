"""A script that trains on several processes: torchrun's or, given a file to meet at, two that it
starts itself."""

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, **where: Any) -> None:
    """Train one rank."""
    if len(sys.argv) > 1:
        where = {"init_method": f"file://{sys.argv[1]}", "rank": rank, "world_size": 2}
    dist.init_process_group("gloo", **where)
    model = DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        torch.multiprocessing.spawn(train, nprocs=2)
    else:
        train(0)
