"""How JAX's sums are timed: in a compiled loop, of as many arrays as a network has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")


@pytest.mark.parametrize(("summed", "met"), [(True, [[1000] * 6]), (False, [])])
def test_the_devices_meet_in_the_loop_for_every_array(
    summed: bool, met: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainmark.backends.jax.spread import AXIS, JaxReduction

    seen: list[list[int]] = []
    averaged = jax.lax.pmean

    def pmean(arrays: Any, axis: str) -> Any:
        seen.append([array.size for array in arrays])
        return averaged(arrays, axis)

    monkeypatch.setattr(jax.lax, "pmean", pmean)
    reduction = JaxReduction(jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), (AXIS,)), 6)
    batch, arrays = reduction.stretch(24_000, 12, summed=summed)()
    assert seen == met, "seen once though it is done twelve times, so it is part of the program"
    assert [array.size for array in arrays] == [1000] * 6
    assert not np.array_equal(batch, np.ones_like(batch)), "the products are not left out"
