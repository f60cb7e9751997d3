"""Arrange and save images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from PIL import Image


def save_image(tensor: torch.Tensor, fp: Any, **_options: Any) -> None:
    """Save the first image of a batch."""
    image = tensor.detach().reshape(-1, *tensor.shape[-3:])[0].clamp(0, 1)
    pixels = (image * 255).byte().permute(1, 2, 0).squeeze(-1).cpu().numpy()
    Image.fromarray(pixels).save(Path(fp))


def make_grid(tensor: torch.Tensor, **_options: Any) -> torch.Tensor:
    """Return the images of a batch next to each other, as one."""
    return torch.cat(list(tensor), dim=-1)
