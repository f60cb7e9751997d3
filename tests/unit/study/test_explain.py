"""What the two sides of the protocol, which never meet, have to agree on, and what is
indistinguishable from noise."""

from __future__ import annotations

import pytest

from trainmark.analysis import attribution
from trainmark.analysis.statistics import Estimate
from trainmark.backends import parts
from trainmark.errors import ExplanationFailed
from trainmark.study.explain import require_steady


def test_the_removed_parts_are_those_that_the_attribution_uses() -> None:
    assert (*attribution.PARTS, "loss") == parts.PARTS


@pytest.mark.parametrize("low", [-0.002, 0.0])
def test_a_step_that_may_take_no_time_is_not_divided(low: float) -> None:
    with pytest.raises(ExplanationFailed, match="--seconds"):
        require_steady(Estimate(0.004, low, 0.039))
    require_steady(Estimate(0.004, 0.001, 0.039))
