"""A recurrent network that is written as a loop over time."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
cell = torch.nn.GRUCell(8, 32)
head = torch.nn.Linear(32, 1)
x = torch.randn(8, 20, 8)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.01)
for _ in range(60):
    state = torch.zeros(8, 32)
    for moment in x.unbind(1):
        state = cell(moment, state)
    loss = head(state).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
