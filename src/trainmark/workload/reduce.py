"""Reduced variants of a workload, for measuring what the removed part costs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal

from trainmark.workload import layers
from trainmark.workload.decode import Misfit
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

Ablated = Literal["attention", "norms", "memory", "embedding"]
_NORMS = (layers.LayerNorm, layers.BatchNorm, layers.LocalResponseNorm)
_ELEMENTWISE = (
    layers.ReLU,
    layers.GELU,
    layers.Dropout,
    layers.ChannelDropout,
    layers.Scale,
    *_NORMS,
)
"""Layers that read and write every value but compute little; removing them does not change the
shapes."""

_WIDTHS: dict[str, Any] = {
    "dense": "units",
    "conv2d": "filters",
    "token-embedding": "width",
    "attention": "heads",
}


def shrunk(workload: Workload) -> Workload:
    """Keep the number of operations but make each tiny.

    Each layer has one unit or filter, and each step has one example.

    Batch norm needs two, since one value has no variance.
    """
    small = with_batch(workload, 1 + lay_out(workload).joins_examples)
    return dataclasses.replace(small, model=_rescaled(workload.model, _one))


def reduced(workload: Workload, width: int | None = None, depth: int | None = None) -> Workload:
    """Return a smaller network of the same kind.

    Args:
        width: width of its first layer with weights; the others shrink in proportion; the number of
            classes stays.
        depth: largest number of repetitions of a repeated layer.
    """

    def shallow(layer: layers.Layer) -> layers.Layer:
        if depth is None or not isinstance(layer, layers.Repeat):
            return layer
        return dataclasses.replace(layer, times=min(layer.times, depth))

    model = layers.changed(workload.model, shallow)
    first = next(
        (
            getattr(layer, _WIDTHS[layer.kind])
            for layer in layers.every(model)
            if layer.kind in _WIDTHS
        ),
        None,
    )
    if width is not None and first is not None:
        scale = functools.partial(_scaled, width=width, first=first)
        model = _rescaled(model, scale)
    return dataclasses.replace(workload, model=model)


def without_elementwise(workload: Workload) -> Workload:
    """Keep only products and convolutions; pooling becomes subsampling if the shapes allow it."""
    with_pooling = _without(workload, *_ELEMENTWISE)
    plain = dataclasses.replace(workload, model=layers.changed(with_pooling.model, _subsampling))
    with contextlib.suppress(Misfit):
        if lay_out(plain).training_flops == lay_out(workload).training_flops:
            return plain
    return with_pooling


def ablated(workload: Workload) -> dict[Ablated, Workload]:
    """Return the workload with ever fewer layers, by what is removed last.

    For ``embedding``, only embeddings are left.
    """
    found: dict[Ablated, Workload] = {}
    less = _without(workload, layers.Attention)
    if less != workload:
        found["attention"] = workload = less
    less = _without(workload, *_NORMS)
    if less != workload:
        found["norms"] = workload = less
    found["memory"] = without_elementwise(workload)
    embedding = (layers.TokenEmbedding, layers.PositionEmbedding)
    embeddings = [layer for layer in workload.model if isinstance(layer, embedding)]
    if embeddings:
        found["embedding"] = dataclasses.replace(workload, model=tuple(embeddings))
    return found


def without_chance(workload: Workload) -> Workload:
    """Return the workload without dropout and distortions, evaluated only at the end."""
    plain = dataclasses.replace(
        workload.deterministic(),
        metrics=dataclasses.replace(workload.metrics, train="running"),
        published=None,
    )
    return plain.with_schedule(evaluate="end", protocol="fresh")


def with_batch(workload: Workload, size: int) -> Workload:
    """Return the workload with ``size`` examples per step.

    Drops a smaller batch at the end of a pass.
    """
    return dataclasses.replace(
        workload, batches=dataclasses.replace(workload.batches, size=size, last="drop")
    )


def _without(workload: Workload, *kinds: type[layers.Layer]) -> Workload:
    def keep(layer: layers.Layer) -> layers.Layer | None:
        return None if isinstance(layer, kinds) else layer

    kept = layers.changed(workload.model, keep)
    return dataclasses.replace(workload, model=kept)


def _one(_: int) -> int:
    return 1


def _scaled(units: int, *, width: int, first: int) -> int:
    """Return the units of a layer in a network whose ``first`` layer is changed to ``width``."""
    return max(1, round(units * width / first))


def _subsampling(layer: layers.Layer) -> layers.Layer:
    if isinstance(layer, layers.MaxPool):
        return dataclasses.replace(layer, size=1, padding="valid")
    return layer


def _rescaled(
    model: tuple[layers.Layer, ...], width: Callable[[int], int]
) -> tuple[layers.Layer, ...]:
    """Change the width of every layer but the last one with weights.

    The width of the last one is the number of classes.
    """
    ends = (layers.Dense, layers.Conv2D, layers.TiedHead)
    last = next(
        (layer for layer in reversed(list(layers.every(model))) if isinstance(layer, ends)), None
    )

    def rescaled(layer: Any) -> Any:
        side = None if layer is last else _WIDTHS.get(layer.kind)
        return (
            layer
            if side is None
            else dataclasses.replace(layer, **{side: width(getattr(layer, side))})
        )

    return layers.changed(model, rescaled)
