from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from trainmark.data.locate import Located

ROOT = Path(__file__).parents[2]


@pytest.fixture
def command(
    tmp_path: Path, drawn: Located, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """The command line in an empty working folder, unless the test has chosen one.

    Each of several runs takes a copy of the working folder, and the repository has a hundred
    thousand files where its environments are installed.
    """
    if Path.cwd() == ROOT:
        empty = tmp_path / "working"
        empty.mkdir()
        monkeypatch.chdir(empty)
    return CommandLine(drawn, cache_home, tmp_path / "out")
