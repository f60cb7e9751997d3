"""A script of Accelerate, with accumulated gradients."""

import accelerate
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(160, 16)), batch_size=8)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for _ in range(2):
    for (x,) in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(x).square().mean())
            optimizer.step()
            optimizer.zero_grad()
