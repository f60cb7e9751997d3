from __future__ import annotations

import numpy as np
import pytest

from trainmark.execute.worker.nudge import nudge
from trainmark.workload import catalog
from trainmark.workload.model import initial_weights, lay_out

WEIGHTS = initial_weights(lay_out(catalog.find("mnist-mlp32")), seed=1)


def test_every_weight_moves_to_its_neighbour_and_zeros_stay() -> None:
    nudged = nudge(WEIGHTS, 1, "fp32")
    assert nudged.keys() == WEIGHTS.keys()
    ups = total = 0
    for name, before in WEIGHTS.items():
        after = nudged[name]
        assert after.dtype == np.float32 and after.shape == before.shape
        assert np.array_equal(after[before == 0], before[before == 0])
        moved, from_ = after[before != 0], before[before != 0]
        up, down = np.nextafter(from_, np.float32(np.inf)), np.nextafter(from_, np.float32(-np.inf))
        power_of_two = np.frexp(np.abs(from_))[0] == 0.5  # towards zero, two neighbours lie within its unit
        assert np.all((moved == up) | (moved == down) | power_of_two)
        ups, total = ups + int((moved > from_).sum()), total + len(moved)
    assert 0.49 < ups / total < 0.51


def test_a_nudge_is_the_same_again_and_another_is_another() -> None:
    first, again, second = (nudge(WEIGHTS, number, "fp32")["dense1.kernel"] for number in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, second)


@pytest.mark.parametrize(("precision", "bits"), [("fp64", 23), ("fp32", 23), ("tf32", 10), ("fp16", 10), ("bf16", 7)])
def test_the_last_place_is_that_of_the_precision(precision: str, bits: int) -> None:
    before = {"x": np.array([1.0, 1.5, -3.0, 0.0, 0.625], dtype=np.float32)}
    moved = np.abs(nudge(before, 1, precision)["x"] - before["x"])  # type: ignore[arg-type]
    assert moved.tolist() == [2.0**-bits, 2.0**-bits, 2.0 ** (1 - bits), 0.0, 2.0 ** (-1 - bits)]
