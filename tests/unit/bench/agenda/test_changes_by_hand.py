"""Which of the promised changes are applied by hand."""

from __future__ import annotations

from typing import Any

from gpu.items.explained import IMAGES, TRANSFORMER, to_apply


def finding(change: str, value: float, low: float | None = 1.1, **other: Any) -> dict[str, Any]:
    speedup = {"value": value, "low": low, "high": value + 0.1}
    return {"change": change, "kind": "change", "speedup": speedup, "learning": "same", **other}


def test_winners_and_all_of_them_together() -> None:
    found = [finding("tf32", 1.28), finding("compile", 1.4), finding("bf16", 0.9, 0.8)]
    assert to_apply(found, TRANSFORMER.changes) == ["compile", "tf32", "compile+tf32"]


def test_changes_that_exclude_each_other_are_not_combined() -> None:
    found = [
        finding("compile", 1.1),
        finding("cuda-graphs", 1.2),
        finding("bf16", 1.5),
        finding("fp16", 1.4),
    ]
    chosen = to_apply(found, TRANSFORMER.changes)
    assert chosen[:4] == ["bf16", "fp16", "cuda-graphs", "compile"]
    assert chosen[4:] == ["bf16+cuda-graphs"]


def test_what_a_script_has_no_switch_for_is_left_out() -> None:
    found = [
        finding("batch=8", 2.0, kind="learning"),
        finding("prefetch", 1.5),
        finding("workers=8", 1.6),
    ]
    assert to_apply(found, IMAGES.changes) == ["workers=8"]
    assert to_apply(found, TRANSFORMER.changes) == []


def test_a_change_that_harms_learning_is_left_out() -> None:
    assert to_apply([finding("fp16", 1.5, learning="worse")], TRANSFORMER.changes) == []


def test_the_combination_of_explain_is_not_repeated() -> None:
    found = [finding("tf32", 1.28), finding("fused", 1.1), finding("fused+tf32", 1.35)]
    assert to_apply(found, TRANSFORMER.changes) == ["tf32", "fused", "fused+tf32"]
