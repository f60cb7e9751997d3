from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from trainmark.data.locate import Located


@pytest.fixture
def command(tmp_path: Path, drawn: Located, cache_home: Path) -> CommandLine:
    return CommandLine(drawn, cache_home, tmp_path / "out")
