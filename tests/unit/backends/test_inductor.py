"""The folder for PyTorch's compiled code."""

from __future__ import annotations

import os

import pytest

from trainmark.backends.inductor import CACHE_VARIABLE, share_cache

FOLDER = "TORCHINDUCTOR_CACHE_DIR"


@pytest.mark.parametrize(
    ("of_command", "of_user", "expected"),
    [
        ("/command", None, "/command"),
        ("/command", "/mine", "/mine"),
        (None, "/mine", "/mine"),
        (None, None, None),
    ],
)
def test_the_commands_cache_is_used_unless_the_user_has_one(
    monkeypatch: pytest.MonkeyPatch,
    of_command: str | None,
    of_user: str | None,
    expected: str | None,
) -> None:
    for variable, value in ((CACHE_VARIABLE, of_command), (FOLDER, of_user)):
        monkeypatch.setenv(variable, "")  # it is restored after the test, whatever sets it
        monkeypatch.delenv(variable)
        if value is not None:
            monkeypatch.setenv(variable, value)
    share_cache()
    assert os.environ.get(FOLDER) == expected
