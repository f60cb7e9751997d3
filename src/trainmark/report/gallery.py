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
"""Side of an example, in pixels."""
GAP = 14
"""Space between examples, in pixels."""
CAPTION = 40
"""Height of the two lines below an example, in pixels."""
COLUMNS = 8
"""Maximum number of examples in a line."""


def picture(found: Predictions, images: NDArray[Any], names: Sequence[str], title: str = "") -> str:
    """Draw the first recognised examples and the most confident mistakes, as SVG.

    Args:
        images: images of the test set, uint8 ``[examples, height, width, channels]``.
        names: names of the classes.
    """
    wrong = np.flatnonzero(~found.right)
    surest = wrong[np.argsort(-found.probabilities[wrong].max(axis=1), kind="stable")]
    parts = [_text(title, GAP, 26, 16)] if title else []
    top = 44 if title else GAP
    lines = {"Recognised": np.flatnonzero(found.right), "Mistakes, most confident first": surest}
    for heading, chosen in lines.items():
        words = heading if len(chosen) else f"{heading}: none"
        parts.append(_text(words, GAP, top + 12, 13, LIGHT.quiet))
        for column, index in enumerate(chosen[:COLUMNS]):
            left = GAP + column * (SIDE + GAP)
            parts.append(_example(found, int(index), images, names, left, top + 24))
        top += 24 + (SIDE + CAPTION if len(chosen) else 0)
    width = GAP + COLUMNS * (SIDE + GAP)
    height = top + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">'
        f'<rect width="100%" height="100%" fill="{LIGHT.background}"/>{"".join(parts)}</svg>'
    )


def _example(
    found: Predictions, index: int, images: NDArray[Any], names: Sequence[str], left: int, top: int
) -> str:
    label = names[int(found.labels[index])]
    predicted = names[int(found.predicted[index])]
    answer = label if label == predicted else f"{label} → {predicted}"
    confidence = units.percent(float(found.probabilities[index].max()), 1)
    image = (
        f"<g><title>test example {index}: {escape(printable(label))}</title>"
        f'<image x="{left}" y="{top}" width="{SIDE}" height="{SIDE}" '
        f'style="image-rendering:pixelated" href="{as_address(images[index])}"/></g>'
    )
    return (
        image
        + _text(answer, left, top + SIDE + 15, 12)
        + _text(confidence, left, top + SIDE + 30, 11, LIGHT.quiet)
    )


def _text(text: str, x: int, y: int, size: int, colour: str = LIGHT.ink) -> str:
    return (
        f'<text x="{x}" y="{y}" font-family="{FONT}" font-size="{size}" fill="{colour}">'
        f"{escape(printable(text))}</text>"
    )
