"""Dropout with cheap random bits, for the CPU, where PyTorch's own draws one number after the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_BITS = 16
_WORDS = 64 // _BITS


class CheapDropout(nn.Module):
    """Dropout that asks PyTorch's generator for 64 bits at a time and decides by 16 of them.

    So the rate is met to 1/65,536, and the scale uses the rate as it then is.

    Args:
        rate: share of values that become 0.
        whole_channels: one draw per example and channel of ``[batch, channels, height, width]``.
    """

    def __init__(self, rate: float, *, whole_channels: bool = False) -> None:
        super().__init__()
        self._dropped = min(round(rate * 2**_BITS), 2**_BITS - 1)
        self._scale = 1 / (1 - self._dropped / 2**_BITS)
        self._whole_channels = whole_channels

    def forward(self, x: Tensor) -> Tensor:
        """Zeroed and scaled in training, as it came otherwise."""
        mask = self.mask_for(x)
        return x if mask is None else x * mask

    def mask_for(self, x: Tensor) -> Tensor | None:
        """What ``x`` is to be multiplied by, 0 or the scale; None when nothing is dropped."""
        if not self.training or not self._dropped:
            return None
        shape = torch.Size((*x.shape[:2], 1, 1)) if self._whole_channels else x.shape
        count = shape.numel()
        words = torch.empty(-(-count // _WORDS), dtype=torch.int64).random_(-(2**63), None)
        draws = words.view(torch.int16)[:count].view(shape).to(torch.promote_types(x.dtype, torch.float32))
        # Draws are whole numbers from -2^15, so this line is at least the scale for a kept value, at most its negative
        # for a dropped one: clamping it is several times quicker than a comparison and its conversion.
        first_kept = self._dropped - 2 ** (_BITS - 1)
        return draws.sub_(first_kept - 0.5).mul_(2 * self._scale).clamp_(0, self._scale).to(x.dtype)
