"""The attention of a head, drawn."""

from __future__ import annotations

import numpy as np

from trainmark.report.continuation import attention_image, attention_lines, next_table

SHARES = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.1, 0.1, 0.8]])


def test_each_character_has_a_row_and_a_column() -> None:
    assert attention_lines(SHARES, "x\na b") == ["  a␣b", "a █", "␣ ██", "b   █"]


def test_a_picture_is_dark_where_a_character_attends() -> None:
    image = attention_image(SHARES)
    assert image.shape == (24, 24, 1)
    assert (image[0, 0, 0], image[0, 8, 0], image[23, 0, 0]) == (0, 255, 223)


def test_the_next_characters_are_visible() -> None:
    rows = next_table([("\n", 0.6), ("a", 0.4)], "ROMEO:").rows
    assert [row.cells[0].text for row in rows] == ["⏎", "a"]
