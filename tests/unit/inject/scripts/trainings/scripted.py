"""A module that TorchScript compiles. 8 steps."""

import io

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = torch.relu(self.layer(x))
        return x


torch.manual_seed(0)
cell = Cell()
cell(torch.ones(1, 6)).sum().backward()
model = torch.jit.script(cell)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
for _ in range(8):
    loss = (model(torch.rand(8, 6)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
torch.jit.save(model, io.BytesIO())
