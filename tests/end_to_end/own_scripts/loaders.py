"""Batches whose sizes differ: a smaller last one, two views of each image, and what two workers
have left."""

import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    TensorDataset,
    default_collate,
    get_worker_info,
)


class Stream(IterableDataset):
    """Forty examples, of which each worker yields a part."""

    def __len__(self) -> int:
        return 40

    def __iter__(self):
        worker = get_worker_info()
        return iter(examples(40)[worker.id :: worker.num_workers])


def examples(number: int) -> list:
    """Each is four numbers and a class."""
    return [(torch.randn(4), each % 3) for each in range(number)]


def both_views(batch: list) -> list:
    """The batch twice."""
    return default_collate(batch + batch)


torch.manual_seed(0)
data = examples(70)
loaders = [
    DataLoader(data, batch_size=16),
    DataLoader(data, batch_size=16, collate_fn=both_views),
    DataLoader(Stream(), batch_size=12, num_workers=2),
]
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
test = DataLoader(TensorDataset(torch.randn(100, 4)), batch_size=50)
for loader in loaders:
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for (x,) in test:
            model(x)
