"""The statement around a line of a script, as large as it can be without the training step."""

from __future__ import annotations

from pathlib import Path

from trainmark.study.explain.statements import lines_around

SCRIPT = """\
def norm(model):
    total = 0.0
    for weight in model.parameters():
        for value in weight.grad:
            total += value.item()
    return total


for x, y in loader:
    loss = model(x)
    loss.backward()
    for weight in model.parameters():
        print(weight.sum().item())
    step()
    print(norm(model))
"""


def test_statements(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    step = ["train.py:11", "train.py:14"]
    assert lines_around("train.py:5", tmp_path, step) == [
        "train.py:3",
        "train.py:4",
        "train.py:5",
    ], "not the function"
    assert lines_around("train.py:13", tmp_path, step) == ["train.py:12", "train.py:13"]
    assert lines_around("train.py:13", tmp_path, ["other.py:12", "train.py:12"]) == ["train.py:13"]
    assert len(lines_around("train.py:13", tmp_path, [])) == 7


def test_what_can_not_be_parsed_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print 'old'")
    assert lines_around("train.py:1", tmp_path, []) == ["train.py:1"]
    assert lines_around("gone.py:1", tmp_path, []) == ["gone.py:1"]
