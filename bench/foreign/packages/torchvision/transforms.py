"""The transforms that the listed scripts use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps


class Compose:
    """One transform after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


class Lambda:
    """A function."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        return self.lambd(image)


class ToTensor:
    """An image as numbers from 0 to 1, channels first."""

    def __call__(self, image: Any) -> torch.Tensor:
        pixels = np.array(image)
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()).float() / 255


class Normalize:
    """Subtract the mean of each channel, and divide by the deviation."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return (image - self.mean) / self.std


class Resize:
    """The smaller edge, or both, in pixels."""

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = size

    def __call__(self, image: Image.Image) -> Image.Image:
        if isinstance(self.size, int):
            scale = self.size / min(image.size)
            return image.resize((round(image.width * scale), round(image.height * scale)))
        return image.resize((self.size[1], self.size[0]))


class CenterCrop:
    """The middle."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, image: Image.Image) -> Image.Image:
        left = (image.width - self.size) // 2
        top = (image.height - self.size) // 2
        return image.crop((left, top, left + self.size, top + self.size))


class Pad:
    """A border."""

    def __init__(self, padding: int) -> None:
        self.padding = padding

    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.expand(image, self.padding)


class RandomCrop:
    """A part at a random place."""

    def __init__(self, size: int | tuple[int, int], padding: int = 0) -> None:
        self.height, self.width = (size, size) if isinstance(size, int) else size
        self.padding = padding

    def __call__(self, image: Image.Image) -> Image.Image:
        image = ImageOps.expand(image, self.padding)
        left = int(torch.randint(image.width - self.width + 1, ()))
        top = int(torch.randint(image.height - self.height + 1, ()))
        return image.crop((left, top, left + self.width, top + self.height))


class RandomHorizontalFlip:
    """Half of the images are mirrored."""

    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.mirror(image) if float(torch.rand(())) < 0.5 else image
