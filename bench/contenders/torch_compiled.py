"""The PyTorch loop once more, with the one line of the `torch.compile` tutorial."""

from __future__ import annotations

import torch
import torch_loader

if __name__ == "__main__":
    torch_loader.main(prepare=torch.compile)
