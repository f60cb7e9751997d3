"""Images get larger with time, as in progressive resizing; the loader counts the examples."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 2, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(TensorDataset(torch.randn(400, 1, 8, 8), torch.randint(0, 2, (400,))), 4)
for step, (images, labels) in enumerate(loader):
    size = 8 + step // 20
    larger = torch.nn.functional.interpolate(images, size)
    loss = torch.nn.functional.cross_entropy(model(larger), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
