"""The statement around a line of a script, as large as it can be without the training step."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.study.explain.statements import line_of_growth, lines_around, texts_of

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


KEEPS = """total = 0.0


class Trainer:
    def train(self):
        total = 0.0
        seen, others = [], []
        for _ in range(9):
            total += 1.0
            self.losses.append(1.0)
            seen, others = seen + [1], []

    @staticmethod
    def other():
        total = []
        total.append(1)


total = total + 1.0
"""


@pytest.mark.parametrize(
    ("function", "name", "line"),
    [
        (5, "total", 9),
        (5, "self.losses", 10),
        (5, "seen", 11),
        (5, "others", None),
        (13, "total", 16),
        (1, "total", 19),
        (0, "absent", None),
    ],
)
def test_where_a_variable_grows(tmp_path: Path, function: int, name: str, line: int | None) -> None:
    (tmp_path / "train.py").write_text(KEEPS)
    found = line_of_growth(f"train.py:{function}", name, tmp_path)
    assert found == (None if line is None else f"train.py:{line}")


@pytest.mark.parametrize("function", ["absent.py:1", "a.ipynb, cell 3, line 4", "broken.py:1"])
def test_where_nothing_can_be_read_no_line_is_named(tmp_path: Path, function: str) -> None:
    (tmp_path / "broken.py").write_text("def (")
    assert line_of_growth(function, "total", tmp_path) is None


def test_the_text_of_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("# coding: latin-1\n  loss = 1  # é\n", "latin-1")
    (tmp_path / "b.py").write_bytes(b"\xff\xfe")
    places = ["a.py:2", "a.py:9", "a.py:0", "b.py:1", "absent.py:1", "a.ipynb, cell 3, line 4"]
    assert texts_of(places, tmp_path) == {"a.py:2": "loss = 1  # é"}
