"""Images that are drawn: each class has another pattern, with noise."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image

EXAMPLES = "STAND_IN_EXAMPLES"
"""Environment variable: how many training examples there are, instead of as many as usual."""


class _Drawn(torch.utils.data.Dataset[Any]):
    image_shape: tuple[int, ...]
    examples = 60_000, 10_000
    classes_count = 10

    def __init__(
        self,
        root: str = "",
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,  # noqa: ARG002  there is nothing to download
    ) -> None:
        self.root = root
        self.train = train
        self.transform = transform
        self.target_transform = target_transform
        most = int(os.environ.get(EXAMPLES, self.examples[0]))
        count = min(most, self.examples[0]) if train else min(most, self.examples[1])
        random = np.random.Generator(np.random.PCG64(0 if train else 1))
        labels = random.integers(0, self.classes_count, count)
        patterns = np.random.Generator(np.random.PCG64(2)).integers(
            0, 192, (self.classes_count, *self.image_shape)
        )
        noise = random.integers(0, 64, (count, *self.image_shape))
        images = (patterns[labels] + noise).astype(np.uint8)
        self.classes = [str(each) for each in range(self.classes_count)]
        self._keep(images, labels)

    def _keep(self, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> None:
        self.data: Any = torch.from_numpy(images)
        self.targets: Any = torch.from_numpy(labels)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = Image.fromarray(np.asarray(self.data[index]))
        target: Any = int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class MNIST(_Drawn):
    """60,000 and 10,000 gray images of 28 × 28."""

    image_shape = 28, 28

    @property
    def train_data(self) -> Any:
        """The images, as old scripts name them."""
        return self.data

    @property
    def train_labels(self) -> Any:
        """Their labels, as old scripts name them."""
        return self.targets

    test_data = train_data
    test_labels = train_labels


class FashionMNIST(MNIST):
    """As MNIST."""


class CIFAR10(_Drawn):
    """50,000 and 10,000 images of 32 × 32 in colour."""

    image_shape = 32, 32, 3
    examples = 50_000, 10_000

    def _keep(self, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> None:
        self.data = images
        self.targets = [int(each) for each in labels]


class CIFAR100(CIFAR10):
    """As CIFAR-10, with 100 classes."""

    classes_count = 100


class FakeData(torch.utils.data.Dataset[Any]):
    """Random images, each drawn when it is read."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, ...] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.size = int(os.environ.get(EXAMPLES, size))
        self.image_size = image_size
        self.num_classes = num_classes
        self.transform = transform

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[Any, int]:
        random = np.random.Generator(np.random.PCG64(index))
        channels, height, width = self.image_size
        pixels = random.integers(0, 256, (height, width, channels), dtype=np.uint8)
        image: Any = Image.fromarray(pixels)
        if self.transform is not None:
            image = self.transform(image)
        return image, int(random.integers(self.num_classes))
