"""Weights without a module, a handwritten optimiser, and torch.func. 7 steps."""

import torch


class Descent(torch.optim.Optimizer):
    def __init__(self, params, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for each in group["params"]:
                each -= group["lr"] * each.grad


torch.manual_seed(0)
weight = torch.randn(3, requires_grad=True)
optimizer = Descent([weight], lr=0.1)
for _ in range(7):
    x = torch.randn(10, 3)
    loss = (x @ weight - 1).square().mean()
    weight.grad = None
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print(torch.func.grad(torch.linalg.norm)(weight.detach()).tolist())
