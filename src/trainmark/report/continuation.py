"""Generated text: the probabilities of the next character, and a head's attention weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark import units
from trainmark.report.table import Cell, Field, Table, table_of

_SHADES = " ░▒▓█"
_PIXELS = 8
"""Side of a cell of the image, in pixels."""
_LONGEST = 64
"""Maximum number of characters in a drawing, and so of its rows and columns."""
_BAR_WIDTH = 24
"""Length of the bar of a certain character, in characters."""


def next_table(likeliest: Sequence[tuple[str, float]], prompt: str) -> Table:
    """Return the likeliest next characters with their probabilities, the likeliest first."""
    return table_of(
        likeliest,
        (
            Field("next", lambda row: Cell(visible(row[0]), tone="strong")),
            Field("probability", lambda row: units.percent(row[1]), "right"),
            Field("", lambda row: "█" * round(_BAR_WIDTH * row[1])),
        ),
        title=f"after {prompt[-20:]!r}",
    )


def attention_lines(shares: NDArray[np.float64], text: str) -> list[str]:
    """Draw attention weights in shades: rows attend to columns, one for each character."""
    text = text[-len(shares) :]
    shares = shares / shares.max(axis=1, keepdims=True)
    text = text[-_LONGEST:]
    shares = shares[-_LONGEST:, -_LONGEST:]
    shades = np.minimum((shares * len(_SHADES)).astype(int), len(_SHADES) - 1)
    rows = ("".join(_SHADES[shade] for shade in row).rstrip() for row in shades)
    lines = ["  " + "".join(map(visible, text))]
    for each, row in zip(text, rows, strict=True):
        lines.append(f"{visible(each)} {row}".rstrip())
    return lines


def attention_image(shares: NDArray[np.float64]) -> NDArray[Any]:
    """Return a grey image of attention weights, white for 0; rows attend to columns."""
    grey = 255 - np.round(255 * shares / shares.max(axis=1, keepdims=True)).astype(np.uint8)
    return np.kron(grey, np.ones((_PIXELS, _PIXELS), np.uint8))[:, :, None]


def visible(character: str) -> str:
    """Return a visible character for a newline or a space."""
    return {"\n": "⏎", " ": "␣"}.get(character, character)
