"""A module that is compiled as one graph, and a compiled optimiser's step. 6 steps."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print(model(torch.ones(1, 8)).item().hex())
for _ in range(6):
    x = torch.randn(16, 8)
    loss = compiled(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print(sum(torch._dynamo.utils.counters["graph_break"].values()))
