"""ResNet-50 v1.5 in a plain PyTorch loop on images in memory, with which most people measure
hardware."""

from __future__ import annotations

import json

import torch
from torch import Tensor, nn
from torch.nn import functional
from turns import Turns


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False),
            nn.BatchNorm2d(4 * width),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            convolution = nn.Conv2d(inputs, 4 * width, 1, stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.shortcut(x), inplace=True)


def network() -> nn.Module:
    blocks = []
    inputs = 64
    for count, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for index in range(count):
            blocks.append(Bottleneck(inputs, width, 2 if index == 0 and width > 64 else 1))
            inputs = 4 * width
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2048, 1000),
    )
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return model


def main() -> None:
    turns = Turns()
    turns.versions(torch=torch.__version__)
    given = json.loads((turns.folder / "data.json").read_text())
    torch.manual_seed(1)
    model = network()
    batch = given["batch"]
    images = torch.randn(8 * batch, 3, 224, 224)
    labels = torch.randint(1000, (8 * batch,))
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.1 * batch / 256, momentum=0.9, weight_decay=1e-4
    )
    step = 0
    for _ in range(turns.epochs):
        for _ in range(given["steps"]):
            chosen = slice(step % 8 * batch, step % 8 * batch + batch)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            step += 1
        turns.epoch_done(loss=loss.item())


if __name__ == "__main__":
    main()
