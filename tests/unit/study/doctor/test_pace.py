from __future__ import annotations

import pytest

from trainmark.analysis.yardstick import Yardstick
from trainmark.record.record import Peaks
from trainmark.study.doctor.pace import Pace, against

XEON = Yardstick("Xeon", "cpu", 2, "measured in 2026", {"fp32": 2e11}, 2e10, [])
H200 = Yardstick("NVIDIA H200", "accelerator", None, "measured in 2026", {"fp32": 5e13, "bf16": 7e14}, 4e12, [])


def pace(flops: float | None, *, name: str = "Xeon", cores: int = 2, busy: bool = False) -> Pace:
    then = {"created": "2026-11-20T10:00:00+00:00", "load_before": 0.6 if busy else 0.1}
    return Pace("cpu", name, "cpu", cores, "torch", Peaks(flops, None, then))


def test_as_fast_as_its_model() -> None:
    (check,) = against([pace(1.9e11)], [XEON])
    assert (check.id, check.status) == ("pace.cpu", "PASS")
    assert "95% of the reference of the same model" in check.found


@pytest.mark.parametrize(("busy", "fix"), [(True, "busy"), (False, "host.load")])
def test_slower_than_its_model(busy: bool, fix: str) -> None:
    (check,) = against([pace(1.24e11, busy=busy)], [XEON])
    assert check.status == "WARN"
    assert "62%" in check.found
    assert fix in check.fix
    assert "measured on 2026-11-20 10:00 UTC" in check.found, "it may have been kept since then"
    assert ("while others used 60% of the CPU" in check.found) == busy


@pytest.mark.parametrize("unlike", [{"name": "EPYC"}, {"cores": 4}])
def test_of_a_model_that_is_not_known_the_others_are_told(unlike: dict[str, str | int]) -> None:
    (check,) = against([pace(1e11, **unlike)], [XEON, H200])  # type: ignore[arg-type]
    assert check.status == "PASS"
    assert "NVIDIA H200 reaches 50.0 TFLOP/s" in check.found


def test_a_limit_that_was_not_measured() -> None:
    (check,) = against([pace(None)], [XEON])
    assert check.status == "SKIP"
