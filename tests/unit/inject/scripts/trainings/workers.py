"""Batches come from worker processes, with a separate generator. 12 steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.randn(3, 8, 8) + index % 2, index % 2


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(
        Noise(), 8, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(1)
    )
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)
    )
    model(torch.zeros(2, 3, 8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
