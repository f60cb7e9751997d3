"""L-BFGS, whose steps call a closure. 6 steps."""

import torch

torch.manual_seed(0)
x = torch.randn(64, 5)
y = x @ torch.arange(5.0) + 0.1 * torch.randn(64)
weight = torch.zeros(5, requires_grad=True)
optimizer = torch.optim.LBFGS([weight], lr=0.1, max_iter=4)


def closure():
    optimizer.zero_grad()
    loss = ((x @ weight - y) ** 2).mean()
    loss.backward()
    return loss


for _ in range(6):
    print(float(optimizer.step(closure)).hex())
