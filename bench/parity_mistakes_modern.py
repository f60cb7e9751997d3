"""PyTorch with one mistake of today's networks at a time, for ``bench/parity.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from parity_mistakes import Mistake, changed, of_optimizer, trained_by
from torch import nn
from torch.nn import functional

from trainmark.backends.base import Job
from trainmark.backends.torch import fast

GPT = "shakespeare-gpt:small"
RESNET = "cifar10-resnet9:small"


def rebuilt(change: Callable[[nn.Module], None]) -> Callable[[], Any]:
    """Return a backend that changes each module of its network."""

    class Rebuilt(fast.TorchFastTrainer):
        def _make(self, job: Job) -> None:
            for module in self._network.modules():
                change(module)
            super()._make(job)

    return trained_by(Rebuilt)


def by_tanh(module: nn.Module) -> None:
    """Use the approximation of GELU."""
    if isinstance(module, nn.GELU):
        module.approximate = "tanh"


def without_epsilon(module: nn.Module) -> None:
    """Divide by the standard deviation alone."""
    if isinstance(module, nn.LayerNorm):
        module.eps = 0.0


class Biased(fast.TorchFastTrainer):
    """Averages the biased variance."""

    def _step_on(self, x: Any, y: Any, row: Any) -> None:
        norms = [module for module in self._network.modules() if isinstance(module, nn.BatchNorm2d)]
        before = [norm.running_var.clone() for norm in norms]
        sizes: list[int] = []
        hooks = [
            norm.register_forward_pre_hook(
                lambda _, inputs: sizes.append(inputs[0].numel() // inputs[0].shape[1])
            )
            for norm in norms
        ]
        super()._step_on(x, y, row)
        for norm, old, count, hook in zip(norms, before, sizes, hooks, strict=True):
            hook.remove()
            kept = old * (1 - norm.momentum)
            norm.running_var.copy_(kept + (norm.running_var - kept) * (count - 1) / count)


def by_nine_tenths(module: nn.Module) -> None:
    """Keep a tenth of the running averages instead of nine."""
    if isinstance(module, nn.BatchNorm2d):
        module.momentum = 0.9


def attending(attend: Callable[..., Any]) -> Callable[[], Any]:
    """Return a backend with another attention; ``attend`` gets PyTorch's function and the
    arguments."""
    usual = functional.scaled_dot_product_attention

    class Attending(fast.TorchFastTrainer):
        def _step_on(self, x: Any, y: Any, row: Any) -> None:
            with patch.object(functional, "scaled_dot_product_attention", self._attend):
                super()._step_on(x, y, row)

        def activations(self, *known: Any, **named: Any) -> Any:
            with patch.object(functional, "scaled_dot_product_attention", self._attend):
                return super().activations(*known, **named)

        @staticmethod
        def _attend(q: Any, k: Any, v: Any, **options: Any) -> Any:
            return attend(usual, q, k, v, **options)

    return trained_by(Attending)


def scaled_by_the_width(usual: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    """Attend with the scale 1/d."""
    return usual(q, k, v, scale=1 / q.shape[-1], **options)


def ahead(usual: Any, q: Any, k: Any, v: Any, is_causal: bool, **options: Any) -> Any:
    """Attend to the next position, too."""
    mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril(1)
    return usual(q, k, v, attn_mask=mask, is_causal=is_causal and False, **options)


class Untied(fast.TorchFastTrainer):
    """Has a separate head, which starts equal to the embedding."""

    def _make(self, job: Job) -> None:
        self._head = next(
            m for m in self._network.modules() if isinstance(m, nn.Linear) and m.out_features == 65
        )
        self._table = self._head.weight
        self._head.weight = nn.Parameter(self._table.detach().clone())
        self._decays[self._head.weight] = self._decays[self._table]
        super()._make(job)

    def load(self, weights: Any) -> None:
        """Set the weights of both."""
        super().load(weights)
        with torch.no_grad():
            self._head.weight.copy_(self._table)


class ClippedAlone(fast.TorchFastTrainer):
    """Clips each gradient by its own norm."""

    def _clip(self) -> None:
        self._unclipped = [parameter.grad.clone() for parameter in self._parameters]
        for parameter in self._parameters:
            nn.utils.clip_grad_norm_([parameter], self._workload.optimizer.clip_norm or 1.0)


class LabelsLate(fast.TorchFastTrainer):
    """Predicts the token itself."""

    def _step_on(self, x: Any, y: Any, row: Any) -> None:  # noqa: ARG002
        super()._step_on(x, x.clone(), row)


MISTAKES = {
    "GELU by tanh": Mistake(rebuilt(by_tanh), (GPT,)),
    "layer norm without epsilon": Mistake(rebuilt(without_epsilon), (GPT,)),
    "attention scaled by 1/d": Mistake(attending(scaled_by_the_width), (GPT,)),
    "mask off by one": Mistake(attending(ahead), (GPT,)),
    "untied head": Mistake(trained_by(Untied), (GPT,)),
    "layer norm decayed": Mistake(changed(of_optimizer(lambda _: {"groups": ()})), (GPT,)),
    "clipped tensor by tensor": Mistake(trained_by(ClippedAlone), (GPT,)),
    "labels not shifted": Mistake(trained_by(LabelsLate), (GPT,)),
    "running variance biased": Mistake(trained_by(Biased), (RESNET,)),
    "momentum of batch norm 0.9": Mistake(rebuilt(by_nine_tenths), (RESNET,)),
    "no Nesterov": Mistake(changed(of_optimizer(lambda _: {"nesterov": False})), (RESNET,)),
}
