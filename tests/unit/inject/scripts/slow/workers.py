"""Worker processes load batches slowly, at one line; the argument says whether it draws numbers."""

import random
import sys
import time

import torch


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.01)
        if sys.argv[1] == "random":
            index += augment()
        return torch.full((4,), index / 64)


def augment():
    return random.random()


loader = torch.utils.data.DataLoader(Slow(), 8, num_workers=2, persistent_workers=True)
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
