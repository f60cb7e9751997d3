"""An optimiser, a loader, a loss and a save that raise."""

import torch
from torch.utils.data import DataLoader


class Sometimes(torch.optim.SGD):
    calls = 0

    def step(self, closure=None):
        Sometimes.calls += 1
        if Sometimes.calls % 2:
            raise ArithmeticError(Sometimes.calls)
        return super().step(closure)


def broken():
    yield torch.ones(2)
    raise OSError("no more")


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return broken()


weight = torch.ones(2, requires_grad=True)
optimizer = Sometimes([weight], lr=0.1)
for _ in range(4):
    try:
        for batch in DataLoader(Stream(), batch_size=None):
            (weight * batch).sum().backward()
            optimizer.step()
    except (ArithmeticError, OSError) as error:
        print(repr(error))
print(weight.tolist())
torch.save(weight, "/nowhere/at/all")
