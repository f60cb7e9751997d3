"""From stored bytes to network input, on PyTorch.

The loader works image by image, and the device batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.data import Dataset

from trainmark.data.dataset import Split
from trainmark.workload.pixels import Input, Standardize, kept, reflected


class Images(Dataset[tuple[Tensor, int]]):
    """A split as in a tutorial's loader.

    It yields one transformed image at a time, ``[channels, height, width]``.
    """

    def __init__(self, spec: Input, split: Split, dtype: torch.dtype) -> None:
        self._spec = spec
        self._dtype = dtype
        self._labels = split.labels.tolist()
        # The common case works as in most tutorials: in place, on one image, channels first.
        self._simple = spec.distortions is None and not spec.standardize_each and spec.crop is None
        images = torch.tensor(split.images)
        if self._simple:
            images = images.permute(0, 3, 1, 2).clone(memory_format=torch.contiguous_format)
        self._images = images
        self._mean, self._sd = _per_channel(spec.standardize, dtype)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, key: int | tuple[int, Tensor]) -> tuple[Tensor, int]:
        """Return an example by its index; augmented if that comes with draws."""
        if isinstance(key, tuple):
            (x, label) = self[key[0]]
            draws = key[1]
            return augment(self._spec, x.unsqueeze(0), draws.unsqueeze(0)).squeeze(0), label
        image = self._images[key]
        label = self._labels[key]
        if not self._simple:
            return transform(self._spec, image.unsqueeze(0), self._dtype).squeeze(0), label
        x = image.to(self._dtype).div_(self._spec.divide_by)
        if self._spec.standardize is not None:
            x.sub_(self._mean).div_(self._sd)
        return x, label


def transform(spec: Input, images: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert training images of bytes to ``[batch, channels, height, width]``.

    The bytes are ``[batch, height, width, channels]``.

    The steps are those of :func:`trainmark.workload.pixels.distort`, with PyTorch's random numbers
    on the device.
    """
    height, width, _ = spec.network_shape
    high = spec.shape[0] - height
    wide = spec.shape[1] - width
    if spec.distortions is None:
        return scale(
            spec, images[:, high // 2 : high // 2 + height, wide // 2 : wide // 2 + width].to(dtype)
        )
    count = len(images)
    device = images.device
    rows = torch.randint(high + 1, (count, 1), device=device) + torch.arange(height, device=device)
    columns = torch.randint(wide + 1, (count, 1), device=device) + torch.arange(
        width, device=device
    )
    if spec.distortions.flip:
        columns = torch.where(torch.rand(count, 1, device=device) < 0.5, columns.flip(1), columns)
    each = torch.arange(count, device=device)[:, None, None]
    x = images[each, rows[:, :, None], columns[:, None, :]].to(dtype)
    low, top = spec.distortions.contrast
    x = (
        x
        + (2 * torch.rand(count, 1, 1, 1, device=device, dtype=dtype) - 1)
        * spec.distortions.brightness
    )
    mean = x.mean(dim=(1, 2), keepdim=True)
    factor = low + (top - low) * torch.rand(count, 1, 1, 1, device=device, dtype=dtype)
    return scale(spec, (x - mean) * factor + mean)


def scale(spec: Input, x: Tensor) -> Tensor:
    """Divide and standardise, and move channels to the front."""

    def like(values: Sequence[float]) -> Tensor:
        # It is made from scalars, since a captured step can't copy from the host.
        return torch.cat([x.new_full((1,), value) for value in values])

    y = spec.rescaled(x, like)
    if spec.standardize_each:
        sd, mean = torch.std_mean(y, dim=(1, 2, 3), correction=0, keepdim=True)
        y = (y - mean) / sd.clamp(min=y[0].numel() ** -0.5)
    return y.permute(0, 3, 1, 2)


def augment(spec: Input, images: Tensor, draws: Tensor, examples: Tensor | None = None) -> Tensor:
    """Augment prepared images ``[n, channels, height, width]``.

    It does what :func:`trainmark.workload.pixels.augment` does.

    Args:
        draws: one row for each image of the result, ``[batch, 5]``.
        examples: indices of the images, ``[batch]``; all of them by default.
    """
    assert spec.augment is not None
    (height, width) = images.shape[2:]
    device = images.device
    cut = spec.augment.cutout
    each = torch.arange(len(images), device=device) if examples is None else examples
    top, left, flip, cut_top, cut_left = draws.unsqueeze(2).unbind(1)
    y = torch.arange(height, device=device)
    x = torch.arange(width, device=device)
    rows = reflected(y + top - spec.augment.pad, height)
    columns = reflected(torch.where(flip == 1, x.flip(0), x) + left - spec.augment.pad, width)
    crops = images[each[:, None, None], :, rows[:, :, None], columns[:, None, :]]  # channels last
    return crops.masked_fill_(~kept(y, x, cut_top, cut_left, cut), 0).permute(0, 3, 1, 2)


def _per_channel(standardize: Standardize | None, dtype: torch.dtype) -> list[float | Tensor]:
    """Return mean and sd, as numbers or ``[channels, 1, 1]``."""
    both = (0.0, 1.0) if standardize is None else (standardize.mean, standardize.sd)
    return [
        torch.tensor(each, dtype=dtype)[:, None, None] if isinstance(each, tuple) else each
        for each in both
    ]
