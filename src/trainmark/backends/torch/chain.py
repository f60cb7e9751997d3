"""The gradient of a network written out, layer by layer, for the CPU.

There autograd's bookkeeping costs as much as a small layer, and some of PyTorch's derivatives are much slower than the
forward pass. A :class:`Chain` stands in for ``network(x)``, the loss and ``backward()``: the same parameters, the same
derivatives, fewer and quicker operations. A layer that has no link of its own goes through autograd, alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainmark.backends.torch import losses
from trainmark.backends.torch.links import Link, link
from trainmark.workload.losses import Loss

VECTOR = 16
"""Channels from which PyTorch's CPU kernels are quicker when the channels come last: the floats of 512 bits."""


class Chain:
    """A network and its loss, differentiated by hand.

    Args:
        network: the layers; :meth:`learn` gives their parameters a ``grad``.
        loss: what the outputs are judged by.
    """

    def __init__(self, network: nn.Sequential, loss: Loss | None) -> None:
        trained = [any(True for _ in module.parameters()) for module in network]
        first = trained.index(True)  # nothing before it needs a gradient
        filters = [module.out_channels for module in network if isinstance(module, nn.Conv2d)]
        channels_last = bool(filters) and min(filters) >= VECTOR
        self._layout = torch.channels_last if channels_last else torch.contiguous_format
        self._links: list[Link] = []
        for index, module in enumerate(network):
            may_overwrite = bool(self._links) and not self._links[-1].keeps_output
            self._links.append(
                link(
                    module,
                    needs_input_gradient=index > first,
                    may_overwrite=may_overwrite,
                    channels_last=channels_last,
                )
            )
        self._trained_from = first
        self._loss = losses.build_with_gradient(loss)

    def settings(self) -> dict[str, str]:
        """What differs from plain autograd."""
        layout = "channels_last" if self._layout == torch.channels_last else "contiguous"
        return {"gradients": "written out", "memory_format": layout}

    def keep(self, x: Tensor) -> None:
        """Prepare for a batch that is the same in every step."""
        kept: Tensor | None = x
        for each in self._links:
            if kept is None:
                return
            kept = each.keep(kept)

    @torch.no_grad()
    def learn(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Give the parameters the gradients of the mean loss over ``x``, ``[batch, ...]``; they must have none before.

        Returns:
            the mean loss, and the outputs ``[batch, classes]``.
        """
        x = x.contiguous(memory_format=self._layout)
        for each in self._links:
            x = each.forward(x)
        loss, gradient = self._loss(x.t().contiguous(), y)
        gradient = gradient.t()
        for each in reversed(self._links[self._trained_from :]):
            gradient = each.backward(gradient)
        return loss, x
