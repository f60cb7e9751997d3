"""A script that trains on several processes."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    loss = model(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
