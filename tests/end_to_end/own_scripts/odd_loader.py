"""A script whose sampler draws random numbers if asked for its length, and whose network the
observer does not see."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
DATA = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))


class Batches(torch.utils.data.Sampler):
    def __iter__(self):
        for _ in range(10):
            yield torch.randint(64, (8,)).tolist()

    def __len__(self) -> int:
        return 10 + 0 * int(torch.rand(1))


if "compile" in sys.argv:
    torch.compile(abs)  # never called; the observer keeps its hook out of what is compiled
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    for x, y in DataLoader(DATA, batch_sampler=Batches()):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())
    with torch.no_grad():
        error = sum(
            float((model(x) - y).square().mean()) for x, y in DataLoader(DATA, batch_size=16)
        )
