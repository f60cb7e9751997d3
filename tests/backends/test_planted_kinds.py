"""A layer, loss or optimiser that a backend does not implement is refused by name, not taken for
another one."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from trainmark.backends import registry
from trainmark.backends.base import Options
from trainmark.errors import Unsupported
from trainmark.workload.model import lay_out
from trainmark_conformance.cases import Case, a_workload

BACKENDS = ("numpy", "torch", "jax", "keras")
CLOSED = ("numpy", "torch", "jax", "keras")


@dataclass(frozen=True)
class Planted:
    """A layer, a loss or an optimiser that a later version may add."""

    learning_rate: float = 0.1
    staircase: None = None
    lr_schedule: None = None
    clip_norm: None = None
    l2: float = 0.0
    kind: str = "planted"


def train_with(backend: str, place: str, style: str) -> None:
    case = Case("planted", a_workload(), (8, 8))
    model = lay_out(case.workload)
    if place == "model":
        layers = (*case.workload.model, Planted())
        last = dataclasses.replace(model.layers[-1], name="planted_0", layer=Planted(), weights={})  # type: ignore[arg-type]
        model = dataclasses.replace(model, layers=(*model.layers, last))
        workload = dataclasses.replace(case.workload, model=layers)  # type: ignore[arg-type]
    else:
        workload = dataclasses.replace(case.workload, **{place: Planted()})  # type: ignore[arg-type]
    trainer = registry.load(backend).trainer(
        workload, model, case.data, Options(style, "cpu", "fp32", seed=1)
    )  # type: ignore[arg-type]
    trainer.load(case.weights)
    trainer.begin_epoch(case.plan)
    trainer.read(trainer.train(1, lambda: None))


@pytest.mark.parametrize("place", ["model", "loss", "optimizer"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_planted_kind_is_refused_by_the_backend(backend: str, place: str) -> None:
    if not registry.find(backend).installed:
        pytest.skip(f"{backend} is not installed")
    with pytest.raises(Unsupported, match=f"{backend} on cpu does not have .* 'planted'"):
        train_with(backend, place, "idiomatic")


@pytest.mark.parametrize("place", ["model", "loss", "optimizer"])
@pytest.mark.parametrize("backend", CLOSED)
def test_a_planted_kind_that_is_claimed_by_mistake_is_not_taken_for_another(
    backend: str, place: str, monkeypatch: Any
) -> None:
    """A backend that lists a kind but forgot to implement it: no last branch may swallow it."""
    entry = registry.find(backend)
    if not entry.installed:
        pytest.skip(f"{backend} is not installed")
    made = registry.load(backend)
    module = sys.modules[type(made).__mro__[-2].__module__]
    monkeypatch.setattr(module, "KINDS", module.KINDS | {"planted"})
    for style in set(made.capabilities().styles) & {"idiomatic", "fast"}:
        with pytest.raises(Unsupported, match="'planted' is not implemented here"):
            train_with(backend, place, style)
