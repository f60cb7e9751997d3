"""What a GPU computes is named by module and line."""

from __future__ import annotations

from trainmark.analysis.modules import ModuleTime
from trainmark.report.gpu_time import gpu_time


def test_the_largest_modules_are_named_with_their_lines() -> None:
    modules = [
        ModuleTime("Linear", "train.py:30", 0.61),
        ModuleTime("AdamW.step", "", 0.2),
        ModuleTime("LayerNorm", "train.py:28", 0.04),
    ]
    assert gpu_time(modules) == ["GPU time by module: Linear (train.py:30) 61 %, AdamW.step 20 %."]


def test_many_small_modules_say_nothing() -> None:
    assert gpu_time([ModuleTime("Linear", "train.py:30", 0.04)] * 10) == []
    assert gpu_time([]) == []
