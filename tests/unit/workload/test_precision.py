from __future__ import annotations

from typing import get_args

import pytest

from trainmark.cli import complete
from trainmark.errors import UnknownName
from trainmark.workload.precision import PRECISIONS, Arithmetic, Precision, listed, precision_named


def test_every_precision_has_a_row() -> None:
    assert tuple(PRECISIONS) == get_args(Precision)


def test_names() -> None:
    assert listed() == "fp32, tf32, bf16, fp16 or fp64"
    assert listed(mixed=False) == "fp32, tf32 or fp64"
    assert precision_named("tf32") == "tf32"
    with pytest.raises(UnknownName, match="unknown precision 'fp7'"):
        precision_named("fp7")


def test_a_new_row_is_all_that_the_neutral_part_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRECISIONS, "fp8", Arithmetic(3, mixed=True, largest=448.0))
    assert precision_named("fp8") == "fp8"
    assert "fp8" in complete.precisions()
    assert "fp8" not in listed(mixed=False)
