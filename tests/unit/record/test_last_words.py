"""The error of a failed process is shown, wherever it was printed."""

from __future__ import annotations

import pytest

from trainmark.record.last_words import last_words

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    open("weights.pt")
FileNotFoundError: [Errno 2] No such file or directory: 'weights.pt'
"""


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (TRACEBACK, "FileNotFoundError: [Errno 2] No such file or directory: 'weights.pt'"),
        (
            TRACEBACK + "[W1] Warning: destroy_process_group() was not called\n",
            "FileNotFoundError: [Errno 2] No such file or directory: 'weights.pt'",
        ),
        (
            "Traceback (most recent call last):\n  File 'a'\nKeyError: 1\n\nDuring handling of the "
            "above exception, another exception occurred:\n\n" + TRACEBACK,
            "FileNotFoundError: [Errno 2] No such file or directory: 'weights.pt'",
        ),
        (TRACEBACK + "  and more of its message\n", TRACEBACK.splitlines()[-1]),
        (
            "".join(f"[rank0]: {line}\n" for line in TRACEBACK.splitlines()) + "[rank0]: bye\n",
            "FileNotFoundError: [Errno 2] No such file or directory: 'weights.pt'",
        ),
        ("epoch 1\nSegmentation fault\n\n", "Segmentation fault"),
        ("Traceback (most recent call last):\n  File 'cut off", "File 'cut off"),
        ("", ""),
        (None, ""),
    ],
)
def test_the_error_or_else_the_last_line(printed: str | None, words: str) -> None:
    assert last_words(printed) == words
