"""The work that is timed for the limits of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from trainmark.backends.base import Options
from trainmark.backends.numpy.peaks import NumpyPeakKernels
from trainmark.workload.products import Product


@pytest.mark.parametrize("turned", [False, True])
def test_batched_products_are_computed_all(turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = list[tuple[tuple[int, ...], ...]]()
    matmul = np.matmul

    def counting(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> np.ndarray:
        computed.append((left.shape, right.shape, out.shape))
        return matmul(left, right, out=out)

    monkeypatch.setattr(np, "matmul", counting)
    work = NumpyPeakKernels(Options("idiomatic", "cpu", "fp32", 1)).products(
        [Product(2, 3, 4, turned), Product(2, 3, 4, turned, number=5)]
    )
    work.queue()
    assert computed == [((2, 3), (3, 4), (2, 4)), ((5, 2, 3), (5, 3, 4), (5, 2, 4))]
