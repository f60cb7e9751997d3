"""Worker processes load batches slowly, at one line; the argument says what else they do.

``random`` draws numbers by a generator of the data set, and ``module`` loads in a module of
PyTorch.
"""

import random
import sys
import time

import torch


class Slow(torch.utils.data.Dataset):
    def __init__(self):
        self.random = random.Random(0)
        self.module = Waits()

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if sys.argv[1] == "module":
            time.sleep(0.001)
            self.module(index)
        else:
            time.sleep(0.01)
            index += self.random.random()
        return torch.full((4,), index / 64)


class Waits(torch.nn.Module):
    def forward(self, _):
        time.sleep(0.009)


loader = torch.utils.data.DataLoader(Slow(), 8, num_workers=2)
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
print(loss.item())
