from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.workload.decode import Misfit
from trainmark.workload.layers import (
    ChannelDropout,
    Conv2D,
    Dense,
    Dropout,
    LocalResponseNorm,
    MaxPool,
    padding_of,
)


@pytest.mark.parametrize(
    ("size", "stride", "width", "before_and_after"),
    [
        (3, 2, 24, (0, 1)),  # the CIFAR-10 tutorial's pools: windows start at 0, 2, 4, ...
        (3, 2, 12, (0, 1)),
        (5, 1, 24, (2, 2)),
        (3, 1, 10, (1, 1)),
        (2, 1, 10, (0, 1)),
        (2, 2, 7, (0, 1)),
        (2, 2, 8, (0, 0)),
        (3, 2, 7, (1, 1)),
        (1, 1, 5, (0, 0)),
        (1, 3, 5, (0, 0)),
    ],
)
def test_same_padding(
    size: int, stride: int, width: int, before_and_after: tuple[int, int]
) -> None:
    assert padding_of(size, stride, width, "same") == before_and_after
    assert padding_of(size, stride, width, "valid") == (0, 0)


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 40))
def test_same_padding_gives_one_output_a_stride(size: int, stride: int, width: int) -> None:
    before, after = padding_of(size, stride, width, "same")
    assert (before + width + after - size) // stride + 1 == -(-width // stride)
    assert 0 <= after - before <= 1


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: Dense(0), "units"),
        (lambda: Dense(1, l2=-1), "l2"),
        (lambda: Conv2D(0, 3), "filters"),
        (lambda: Conv2D(1, 0), "size"),
        (lambda: MaxPool(0, 1), "size"),
        (lambda: MaxPool(1, 0), "stride"),
        (lambda: Dropout(1.0), "rate"),
        (lambda: Dropout(-0.1), "rate"),
        (lambda: ChannelDropout(1.5), "rate"),
        (lambda: LocalResponseNorm(-1, 1, 1), "radius"),
        (lambda: LocalResponseNorm(1, 1, 1, bias=0), "bias"),
    ],
)
def test_a_layer_refuses_what_makes_no_sense(build: Callable[[], object], field: str) -> None:
    with pytest.raises(Misfit) as caught:
        build()
    assert caught.value.path == (field,)
