"""Examples as the network saw them, with what they are and what they were taken for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from trainmark import units
from trainmark.analysis.predictions import Predictions
from trainmark.report.charts.theme import FONT, LIGHT
from trainmark.report.png import as_address
from trainmark.report.printable import printable

SIDE, GAP, CAPTION = 84, 14, 40
COLUMNS = 8


@dataclass(frozen=True)
class Example:
    """One of the test set.

    Args:
        index: in it.
        image: stored, ``[height, width, channels]`` of bytes.
        probability: that the network gives to ``predicted``.
    """

    index: int
    image: NDArray[Any]
    label: int
    predicted: int
    probability: float

    @property
    def right(self) -> bool:
        """Whether it was taken for what it is."""
        return self.label == self.predicted

    @property
    def address(self) -> str:
        """The image, as an address that needs no host."""
        return as_address(self.image)

    @property
    def surety(self) -> str:
        """How sure the network was."""
        return units.percent(self.probability, 1)


@dataclass(frozen=True)
class Gallery:
    """Of one network.

    Args:
        title: which.
        note: how it was made, or why it could not be.
        names: of the classes.
    """

    title: str
    note: str
    right: tuple[Example, ...] = ()
    wrong: tuple[Example, ...] = ()
    names: tuple[str, ...] = ()


def examples(found: Predictions, images: NDArray[Any], number: int = COLUMNS) -> tuple[list[Example], list[Example]]:
    """The first ``number`` that were recognised, and the wrong ones of which the network was surest."""
    right, wrong = np.flatnonzero(found.right)[:number], np.flatnonzero(~found.right)
    surest = wrong[np.argsort(-found.probabilities[wrong].max(axis=1), kind="stable")][:number]
    return [_example(found, images, int(index)) for index in right], [
        _example(found, images, int(index)) for index in surest
    ]


def grid(right: Sequence[Example], wrong: Sequence[Example], names: Sequence[str], title: str) -> str:
    """Both as an SVG picture, each with its label and what it was taken for.

    Args:
        names: of the classes.
    """
    parts, top = [_words(title, GAP, 26, size=16, weight=600)], 44
    for heading, shown in (("Recognised", right), ("Taken for something else, the surest first", wrong)):
        parts.append(_words(heading if shown else f"{heading}: none", GAP, top + 12, size=13, colour=LIGHT.quiet))
        top += 24
        for number, each in enumerate(shown):
            left = GAP + (number % COLUMNS) * (SIDE + GAP)
            down = top + (number // COLUMNS) * (SIDE + CAPTION)
            parts.append(_drawn(each, names, left, down))
        top += -(-len(shown) // COLUMNS) * (SIDE + CAPTION)
    width = GAP + COLUMNS * (SIDE + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + GAP}" '
        f'viewBox="0 0 {width} {top + GAP}"><rect width="100%" height="100%" fill="{LIGHT.background}"/>'
        f"{''.join(parts)}</svg>"
    )


def _example(found: Predictions, images: NDArray[Any], index: int) -> Example:
    predicted = int(found.predicted[index])
    return Example(
        index, images[index], int(found.labels[index]), predicted, float(found.probabilities[index, predicted])
    )


def _drawn(example: Example, names: Sequence[str], left: int, top: int) -> str:
    label = names[example.label] if example.right else f"{names[example.label]} → {names[example.predicted]}"
    colour = LIGHT.ink if example.right else LIGHT.sides[1]
    return (
        f'<image x="{left}" y="{top}" width="{SIDE}" height="{SIDE}" style="image-rendering:pixelated" '
        f'href="{as_address(example.image)}"/>'
        + _words(label, left, top + SIDE + 15, size=12, colour=colour)
        + _words(units.percent(example.probability, 1), left, top + SIDE + 30, size=11, colour=LIGHT.quiet)
    )


def _words(text: str, x: int, y: int, *, size: int, colour: str = LIGHT.ink, weight: int = 400) -> str:
    family = FONT.replace('"', "'")
    return (
        f'<text x="{x}" y="{y}" font-family="{family}" font-size="{size}" font-weight="{weight}" fill="{colour}">'
        f"{escape(printable(text))}</text>"
    )
