"""A script whose data set sleeps, can't be read by other processes, and that saves under an
absolute path."""

import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Slow(Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int):
        if get_worker_info() is not None:
            raise RuntimeError("not from another process")
        time.sleep(0.004)
        x = torch.full((16,), index / 4096)
        return x, x.sum()


torch.manual_seed(0)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(10):
    for x, y in DataLoader(Slow(), batch_size=4, shuffle=True):
        loss = torch.nn.functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save(model.state_dict(), sys.argv[1])
        with Path("log").open("a") as log:
            print(loss.item(), file=log)
