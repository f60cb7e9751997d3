"""One layer each, forwards and backwards, for :class:`trainmark.backends.torch.chain.Chain`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainmark.backends.torch import products
from trainmark.backends.torch.chance import CheapDropout

_back = torch.ops.aten


class Link:
    """One layer of a chain. What it needs on the way back it keeps."""

    keeps_output = False
    """Whether the way back needs the outputs as they were given, so that nobody may write over them."""

    def keep(self, x: Tensor) -> Tensor | None:  # noqa: ARG002
        """Prepare for inputs that are the same in every step.

        Returns:
            what the next layer then gets in every step, None where that varies.
        """
        return None

    def forward(self, x: Tensor) -> Tensor:
        """Outputs ``[batch, ...]`` for inputs ``[batch, ...]``."""
        raise NotImplementedError

    def backward(self, gradient: Tensor) -> Tensor:
        """From the gradient of the outputs to that of the inputs; its parameters get their ``grad``.

        It may write over ``gradient``, and lets go of what it kept. Where no layer before it is trained, what it
        returns means nothing.
        """
        raise NotImplementedError


def link(module: nn.Module, *, needs_input_gradient: bool, may_overwrite: bool, channels_last: bool) -> Link:
    """The link of a layer.

    Args:
        module: the layer.
        needs_input_gradient: some layer before it is trained.
        may_overwrite: nobody will read its inputs again.
        channels_last: how images lie in memory.
    """
    if type(module) is nn.Linear:
        return DenseLink(module, needs_input_gradient)
    if type(module) is nn.Conv2d and module.stride == module.dilation == (1, 1) and module.groups == 1:
        return ConvolutionLink(module, needs_input_gradient)
    if type(module) is CheapDropout:
        return DropoutLink(module)
    if type(module) is nn.ReLU:
        return ReLULink(in_place=may_overwrite)
    if type(module) is nn.Flatten:
        return FlattenLink()
    if type(module) is nn.LocalResponseNorm and module.size % 2:
        return NormLink(module)
    if type(module) is nn.MaxPool2d and not channels_last and _halves(module):
        return HalvingLink()
    return AutogradLink(module)


class DenseLink(Link):
    """``x Wᵀ + b``."""

    def __init__(self, module: nn.Linear, needs_input_gradient: bool) -> None:
        self._weight, self._bias = module.weight, module.bias
        self._needs_input_gradient = needs_input_gradient
        self._kept: Tensor | None = None

    def keep(self, x: Tensor) -> Tensor | None:
        """Have them transposed as well, which makes the kernel's gradient as quick as the forward product."""
        self._kept, self._columns = x, x.t().contiguous()
        return None

    def forward(self, x: Tensor) -> Tensor:
        self._x = x
        return products.rows_times(x, self._weight.t(), self._bias)

    def backward(self, gradient: Tensor) -> Tensor:
        x, kept = self._x, self._kept
        del self._x
        if kept is not None and x.data_ptr() == kept.data_ptr() and x.shape == kept.shape:
            self._weight.grad = (self._columns @ gradient).t().contiguous()
        else:
            self._weight.grad = products.sum_over_rows(gradient, x)
        self._bias.grad = gradient.sum(0)
        if not self._needs_input_gradient:
            return gradient
        return products.rows_times(gradient, self._weight)


class ConvolutionLink(Link):
    """A convolution with stride 1."""

    def __init__(self, module: nn.Conv2d, needs_input_gradient: bool) -> None:
        self._weight, self._bias = module.weight, module.bias
        self._padding = list(module.padding)
        self._needs_input_gradient = needs_input_gradient

    def forward(self, x: Tensor) -> Tensor:
        self._x = x
        return torch.conv2d(x, self._weight, self._bias, padding=self._padding)

    def backward(self, gradient: Tensor) -> Tensor:
        x = images = self._x
        outputs = gradient
        del self._x
        if x.shape[1] > 1:  # this derivative alone is up to twice as quick with the channels last
            images = x.contiguous(memory_format=torch.channels_last)
            outputs = gradient.contiguous(memory_format=torch.channels_last)
        self._weight.grad = self._derivative(outputs, images, [False, True, False])[1].contiguous()
        self._bias.grad = gradient.sum((0, 2, 3))
        return self._derivative(gradient, x, [True, False, False])[0] if self._needs_input_gradient else gradient

    def _derivative(self, gradient: Tensor, x: Tensor, wanted: list[bool]) -> Any:
        ones = [1, 1]
        return _back.convolution_backward(
            gradient, x, self._weight, None, ones, self._padding, ones, False, [0, 0], 1, wanted
        )


class ReLULink(Link):
    """``max(x, 0)``."""

    keeps_output = True

    def __init__(self, *, in_place: bool) -> None:
        self._rectify = torch.relu_ if in_place else torch.relu

    def forward(self, x: Tensor) -> Tensor:
        self._y = self._rectify(x)
        return self._y

    def backward(self, gradient: Tensor) -> Tensor:
        y = self._y
        del self._y
        return _back.threshold_backward.grad_input(gradient, y, 0, grad_input=gradient)


class DropoutLink(Link):
    """Multiplication by a mask."""

    keeps_output = True  # without a mask its output is its input, which somebody else may keep

    def __init__(self, module: CheapDropout) -> None:
        self._module = module

    def forward(self, x: Tensor) -> Tensor:
        self._mask = self._module.mask_for(x)
        return x if self._mask is None else x * self._mask

    def backward(self, gradient: Tensor) -> Tensor:
        mask = self._mask
        del self._mask
        return gradient if mask is None else gradient * mask


class FlattenLink(Link):
    """Images to vectors."""

    keeps_output = True  # it is a view of its input, which somebody else may keep

    def keep(self, x: Tensor) -> Tensor | None:
        return x.flatten(1) if x.is_contiguous() else None  # a copy would be another one in every step

    def forward(self, x: Tensor) -> Tensor:
        self._like = x
        return x.flatten(1)

    def backward(self, gradient: Tensor) -> Tensor:
        like = self._like
        del self._like
        gradient = gradient.reshape(like.shape)
        return gradient if like.is_contiguous() else torch.empty_like(like).copy_(gradient)


class HalvingLink(Link):
    """Maximum pooling of windows of 2 × 2 that don't overlap: over pairs of rows, then over pairs of columns.

    PyTorch's own goes value by value through images whose channels come first. A last row or column without a partner
    is left out. Where the largest values tie across the diagonal, the gradient goes to another of them than PyTorch's.
    """

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        self._left_over = [0, width % 2, 0, height % 2]
        x, self._below = _larger(x[:, :, : height - height % 2, : width - width % 2], 2)
        x, self._right = _larger(x, 3)
        return x

    def backward(self, gradient: Tensor) -> Tensor:
        gradient = _to_larger(_to_larger(gradient, self._right, 3), self._below, 2)
        del self._right, self._below
        return functional.pad(gradient, self._left_over) if any(self._left_over) else gradient


class NormLink(Link):
    """Local response normalisation: the sum over neighbouring channels is a 1 × 1 convolution with a band of ones.

    PyTorch's own averages over a third dimension, value by value. With ``s`` the sums, ``d = k + α·s`` and
    ``y = x·d^-β``, the derivative is ``g·d^-β - 2αβ·x·band(g·y/d)``.
    """

    keeps_output = True

    def __init__(self, module: nn.LocalResponseNorm) -> None:
        self._radius = module.size // 2
        self._alpha, self._beta, self._k = module.alpha / module.size, module.beta, module.k
        self._band = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        if len(self._band) != x.shape[1]:
            ones = x.new_ones(x.shape[1], x.shape[1])
            self._band = ones.triu(-self._radius).tril(self._radius)[:, :, None, None]
        self._x = x
        self._d = torch.conv2d(x * x, self._band).mul_(self._alpha).add_(self._k)
        self._power = _inverse_power(self._d, self._beta)
        self._y = x * self._power
        return self._y

    def backward(self, gradient: Tensor) -> Tensor:
        through_sums = torch.conv2d((gradient * self._y).div_(self._d), self._band).mul_(self._x)
        gradient = (gradient * self._power).sub_(through_sums, alpha=2 * self._alpha * self._beta)
        del self._x, self._d, self._power, self._y
        return gradient


class AutogradLink(Link):
    """Any other layer."""

    keeps_output = True  # its derivative may be written in terms of it

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def forward(self, x: Tensor) -> Tensor:
        self._x = x.detach().requires_grad_()
        with torch.enable_grad():
            self._y = self._module(self._x)
        return self._y.detach()

    def backward(self, gradient: Tensor) -> Tensor:
        x, y = self._x, self._y
        del self._x, self._y
        torch.autograd.backward(y, gradient)
        assert x.grad is not None
        return x.grad


def _halves(pool: nn.MaxPool2d) -> bool:
    return pool.kernel_size == pool.stride == 2 and not pool.padding and pool.dilation == 1 and not pool.ceil_mode


def _larger(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Of each pair of neighbours the larger, and by how much the second exceeds the first."""
    first, second = x.unflatten(dim, (-1, 2)).unbind(dim + 1)
    return torch.maximum(first, second), second - first


def _to_larger(gradient: Tensor, excess: Tensor, dim: int) -> Tensor:
    """The gradient of each pair, all of it to its larger member."""
    pairs = gradient.new_empty((*gradient.shape[: dim + 1], 2, *gradient.shape[dim + 1 :]))
    first, second = pairs.unbind(dim + 1)
    to_second = _back.threshold_backward(gradient, excess, 0)  # four times slower straight into the gaps
    second.copy_(to_second)
    torch.sub(gradient, to_second, out=first)
    return pairs.flatten(dim, dim + 1)


def _inverse_power(x: Tensor, exponent: float) -> Tensor:
    """``x^-exponent``; for the usual 3/4 by square roots, which are several times quicker than a power."""
    if exponent != 0.75:
        return x.pow(-exponent)
    root = x.rsqrt()
    return root.sqrt().mul_(root)
