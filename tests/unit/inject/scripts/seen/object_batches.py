"""Batches of graphs: each is an object with the nodes of all its graphs."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Batch:
    def __init__(self, graphs):
        self.x = torch.cat(graphs)
        self.graph = torch.cat([torch.full((len(x),), n) for n, x in enumerate(graphs)])
        self.count = len(graphs)


torch.manual_seed(0)
graphs = [torch.randn(3 + number % 5, 8) for number in range(10)]
network = nn.Linear(8, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(4):
    for batch in DataLoader(graphs, batch_size=4, shuffle=True, collate_fn=Batch):
        nodes = network(batch.x)
        found = torch.zeros(batch.count, 2).index_add(0, batch.graph, nodes)
        loss = nn.functional.cross_entropy(found, torch.ones(batch.count, dtype=torch.int64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
