"""Scripts that do what an observer may trip over end as they do without it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.observed import Run, observed, plain

pytest.importorskip("torch")
SCRIPTS = Path(__file__).parent / "scripts" / "hostile"


@pytest.mark.parametrize(
    ("name", "code", "steps"),
    [
        ("catches_everything", 3, 9),
        ("in_a_thread", 0, 10),
        ("in_a_fork", 5, 5),
        ("in_an_interpreter", 1, 0),
        ("without_modules", 0, 6),
        ("without_its_folder", 0, 4),
        ("raises_in_a_step", 1, 2),
    ],
)
def test_exit_code_and_output_are_the_scripts_own(
    name: str, code: int, steps: int, tmp_path: Path
) -> None:
    if name == "in_an_interpreter" and sys.version_info >= (3, 13):
        pytest.skip("the module has another name")
    before = plain(SCRIPTS / f"{name}.py", folder=tmp_path)
    after = observed(SCRIPTS / f"{name}.py", folder=tmp_path)
    assert before.code == code, before.err
    assert without_addresses(after) == without_addresses(before)
    assert after.steps == steps


def without_addresses(run: Run) -> tuple[int, str, str]:
    """Return what a user sees, without the addresses of objects."""
    return run.code, run.out, re.sub(r"0x\w+>", ">", run.err)
