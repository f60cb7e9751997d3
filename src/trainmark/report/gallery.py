"""A picture of test examples with their labels and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from trainmark import units
from trainmark.analysis.predictions import Predictions
from trainmark.report.charts.theme import FONT, LIGHT
from trainmark.report.png import as_address
from trainmark.report.printable import printable

SIDE = 84
GAP = 14
CAPTION = 40
COLUMNS = 8


def picture(found: Predictions, images: NDArray[Any], names: Sequence[str], title: str = "") -> str:
    """Draw the first recognised examples and the most confident mistakes, as SVG.

    Args:
        images: images of the test set, uint8 ``[examples, height, width, channels]``.
        names: names of the classes.
    """
    wrong = np.flatnonzero(~found.right)
    surest = wrong[np.argsort(-found.probabilities[wrong].max(axis=1), kind="stable")]
    parts, top = ([_text(title, GAP, 26, 16)], 44) if title else ([], GAP)
    for heading, chosen in (
        ("Recognised", np.flatnonzero(found.right)),
        ("Mistakes, most confident first", surest),
    ):
        parts.append(
            _text(heading if len(chosen) else f"{heading}: none", GAP, top + 12, 13, LIGHT.quiet)
        )
        for column, index in enumerate(chosen[:COLUMNS]):
            parts.append(
                _example(found, int(index), images, names, GAP + column * (SIDE + GAP), top + 24)
            )
        top += 24 + (SIDE + CAPTION if len(chosen) else 0)
    width = GAP + COLUMNS * (SIDE + GAP)
    height = top + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 '
        f'{width} {height}">'
        f'<rect width="100%" height="100%" fill="{LIGHT.background}"/>{"".join(parts)}</svg>'
    )


def _example(
    found: Predictions, index: int, images: NDArray[Any], names: Sequence[str], left: int, top: int
) -> str:
    label = names[int(found.labels[index])]
    predicted = names[int(found.predicted[index])]
    return (
        f"<g><title>test example {index}: {escape(printable(label))}</title>"
        f'<image x="{left}" y="{top}" width="{SIDE}" height="{SIDE}" '
        'style="image-rendering:pixelated" '
        f'href="{as_address(images[index])}"/></g>'
        + _text(
            label if label == predicted else f"{label} → {predicted}", left, top + SIDE + 15, 12
        )
        + _text(
            units.percent(float(found.probabilities[index].max()), 1),
            left,
            top + SIDE + 30,
            11,
            LIGHT.quiet,
        )
    )


def _text(text: str, x: int, y: int, size: int, colour: str = LIGHT.ink) -> str:
    return (
        f'<text x="{x}" y="{y}" font-family="{FONT}" font-size="{size}" fill="{colour}">'
        f"{escape(printable(text))}</text>"
    )
