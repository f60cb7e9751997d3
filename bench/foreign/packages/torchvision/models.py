"""Names that torchmetrics imports; none of the networks is there."""

from __future__ import annotations

from typing import Any


class VGG16_Weights:
    """There are no weights."""


def resnet50(**_options: Any) -> Any:
    """Fail: this network is missing."""
    raise NotImplementedError


def vgg16(**_options: Any) -> Any:
    """Fail: this network is missing."""
    raise NotImplementedError
