"""``trainmark explain --patch`` writes to patches alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.cli.main import run


def test_a_script_is_not_overwritten_by_its_patch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)\n")
    assert run(["explain", "--patch", "train.py", "--", "python", "train.py"]) == 2
    assert "a name that ends with .patch or .diff, found train.py" in capsys.readouterr().err
    assert (tmp_path / "train.py").read_text() == "print(1)\n"
