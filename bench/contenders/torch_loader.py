"""PyTorch as its tutorials train: an `nn.Module`, a shuffling `DataLoader`, and the five lines of
the loop.

MNIST follows "What is torch.nn really?": tensors made once, a `TensorDataset` over them. CIFAR-10
follows "Training a classifier": one image at a time through random transforms, in two worker
processes; the workers are kept from epoch to epoch, which the loader offers and the tutorial leaves
out.

With the argument `per-image` MNIST follows "Datasets & DataLoaders" instead: a `Dataset` converts
one image at a time. CIFAR-10 then does without worker processes. This is the loop of trainmark's
style `idiomatic`.

It differs from the workload's definition: RMSprop is PyTorch's own, mlp512's loss is not clipped,
and mlp128 draws a new order for every epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import arrays
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from turns import Turns


def mlp32() -> nn.Module:
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))
    for layer in linear_layers(model):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return model


def mlp128() -> nn.Module:
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    for layer in linear_layers(model):
        nn.init.uniform_(layer.weight, -0.01, 0.01)
        nn.init.zeros_(layer.bias)
    return model


def mlp512() -> nn.Module:
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(512, 10),
    )  # fmt: skip
    for layer in linear_layers(model):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return model


def cnn() -> nn.Module:
    return nn.Sequential(  # PyTorch's own initial weights are the workload's
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(10, 20, 5), nn.Dropout2d(0.5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(),
        nn.Linear(320, 50), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(50, 10),
    )  # fmt: skip


def cifar_cnn() -> nn.Module:
    def pool() -> list[nn.Module]:  # windows from 0, as the tutorial of TensorFlow pads
        # behind a ReLU, 0 is as good as nothing
        return [nn.ZeroPad2d((0, 1, 0, 1)), nn.MaxPool2d(3, stride=2)]

    norm = nn.LocalResponseNorm(9, alpha=0.001, beta=0.75)  # divides alpha by the window itself
    model = nn.Sequential(
        nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), *pool(), norm,
        nn.Conv2d(64, 64, 5, padding=2), nn.ReLU(), norm, *pool(),
        nn.Flatten(),
        nn.Linear(2304, 384), nn.ReLU(),
        nn.Linear(384, 192), nn.ReLU(),
        nn.Linear(192, 10),
    )  # fmt: skip
    layers = [layer for layer in model if isinstance(layer, (nn.Conv2d, nn.Linear))]
    for layer, sd, bias in zip(
        layers, (0.05, 0.05, 0.04, 0.04, 1 / 192), (0, 0.1, 0.1, 0.1, 0), strict=True
    ):
        nn.init.trunc_normal_(layer.weight, std=sd, a=-2 * sd, b=2 * sd)
        nn.init.constant_(layer.bias, bias)
    return model


def linear_layers(model: nn.Module) -> list[nn.Linear]:
    return [layer for layer in model.modules() if isinstance(layer, nn.Linear)]


def optimizer_for(workload: str, model: nn.Module) -> torch.optim.Optimizer:
    if workload == "mnist-mlp512":
        return torch.optim.RMSprop(model.parameters(), lr=0.001, alpha=0.9, eps=1e-8)
    if workload == "mnist-mlp128":
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-5)
    if workload == "mnist-mlp32":
        return torch.optim.Adam(model.parameters(), lr=0.001)
    if workload == "mnist-cnn":
        return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    decayed = [layer.weight for layer in linear_layers(model)[:2]]
    others = [
        weight for weight in model.parameters() if all(weight is not other for other in decayed)
    ]
    return torch.optim.SGD([{"params": decayed, "weight_decay": 0.004}, {"params": others}], lr=0.1)


class Distorted(Dataset[tuple[Tensor, int]]):
    """CIFAR-10 through the random transforms of the workload, one image at a time."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
        self.labels = labels.astype(np.int64).tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        top, left = torch.randint(9, (2,)).tolist()
        image = self.images[index, :, top : top + 24, left : left + 24].float()
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        image = image + torch.empty(()).uniform_(-63, 63)
        mean = image.mean(dim=(1, 2), keepdim=True)
        image = (image - mean) * torch.empty(()).uniform_(0.2, 1.8) + mean
        return standardized(image), self.labels[index]


class Converted(Dataset[tuple[Tensor, int]]):
    """MNIST as the network's input, converted one image at a time."""

    def __init__(self, workload: str, images: np.ndarray, labels: np.ndarray) -> None:
        self.images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
        self.labels = labels.tolist()
        self.scale = 256 if workload == "mnist-mlp128" else 255
        self.standardize = workload == "mnist-cnn"

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index].float().div_(self.scale)
        return image.sub_(0.1307).div_(0.3081) if self.standardize else image, self.labels[index]


def standardized(images: Tensor) -> Tensor:
    sd, mean = torch.std_mean(images, dim=(-3, -2, -1), correction=0, keepdim=True)
    return (images - mean) / sd.clamp(min=(3 * 24 * 24) ** -0.5)


def pixels(workload: str, images: np.ndarray) -> Tensor:
    """Convert images to the network's input, without random parts, ``[n, channels, height,
    width]``."""
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float()
    if workload == "cifar10-cnn":
        return standardized(x[:, :, 4:28, 4:28])
    if workload == "mnist-cnn":
        return ((x / 255 - 0.1307) / 0.3081).contiguous()
    return (x / (256 if workload == "mnist-mlp128" else 255)).contiguous()


def loader_for(
    workload: str, images: np.ndarray, labels: np.ndarray, *, per_image: bool
) -> DataLoader | list[tuple[Tensor, Tensor]]:
    if workload == "cifar10-cnn":
        dataset = Distorted(images, labels)
        workers = {} if per_image else {"num_workers": 2, "persistent_workers": True}
        return DataLoader(dataset, batch_size=128, shuffle=True, drop_last=True, **workers)
    x = pixels(workload, images)
    y = torch.from_numpy(labels).long()
    if workload == "mnist-mlp32":
        # one batch is the whole training set: a loader would only copy it, 60,000 images one by one
        return [(x, y)]
    batch = {"mnist-mlp512": 128, "mnist-mlp128": 100, "mnist-cnn": 200}[workload]
    dataset = Converted(workload, images, labels) if per_image else TensorDataset(x, y)
    return DataLoader(dataset, batch_size=batch, shuffle=True)


def ema(average: Tensor, weight: Tensor, updates: Tensor) -> Tensor:
    """The moving average of the weights, slower as training goes on."""
    decay = torch.clamp((1 + updates) / (10 + updates), max=0.9999)
    return decay * average + (1 - decay) * weight


NETWORKS = {
    "mnist-mlp32": mlp32,
    "mnist-mlp128": mlp128,
    "mnist-mlp512": mlp512,
    "mnist-cnn": cnn,
    "cifar10-cnn": cifar_cnn,
}


def main(prepare: Callable[[nn.Module], nn.Module] = lambda model: model) -> None:
    turns = Turns()
    turns.versions(torch=torch.__version__)
    per_image = "per-image" in sys.argv[4:]
    if per_image and turns.workload == "mnist-mlp32":
        turns.cannot("its one batch is converted at once, as in the other PyTorch loops")
    torch.manual_seed(1)
    x_train, y_train, x_test, y_test = arrays.load(turns.folder)

    network = NETWORKS[turns.workload]()
    optimizer = optimizer_for(turns.workload, network)
    averaged = None
    if turns.workload == "cifar10-cnn":
        averaged = torch.optim.swa_utils.AveragedModel(network, avg_fn=ema)
    model = prepare(network)
    loss_fn = nn.CrossEntropyLoss()
    train_loader = loader_for(turns.workload, x_train, y_train, per_image=per_image)

    for _ in range(turns.epochs):
        model.train()
        running_loss = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            if averaged is not None:
                averaged.update_parameters(network)
            running_loss += loss.item()
        turns.epoch_done()

    tested = averaged or network
    tested.eval()
    with torch.no_grad():
        parts = pixels(turns.workload, x_test).split(1000)
        predicted = torch.cat([tested(part).argmax(dim=1) for part in parts])
    turns.test_accuracy((predicted == torch.from_numpy(y_test)).float().mean().item())


if __name__ == "__main__":
    main()
