"""Light and dark themes of charts, with a colour-blind-safe palette (after Okabe and Ito 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Theme:
    """The colours of a theme.

    Args:
        background: None is transparent.
        ink: text colour; ``quiet`` is for less important text, ``line`` for grids.
        sides: colours of the compared sides, in order.
    """

    background: str | None
    ink: str
    quiet: str
    line: str
    sides: tuple[str, ...]

    def config(self) -> dict[str, Any]:
        """Return Vega-Lite's ``config``."""
        font = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
        axis = {
            **font,
            "labelColor": self.quiet,
            "titleColor": self.ink,
            "gridColor": self.line,
            "domainColor": self.quiet,
            "tickColor": self.quiet,
            "labelLimit": 220,
            "labelOverlap": "greedy",
            "labelSeparation": 6,
            "titlePadding": 10,
        }
        legend = {
            **font,
            "labelColor": self.ink,
            "titleColor": self.quiet,
            "labelLimit": 320,
            "symbolStrokeWidth": 2.5,
            "symbolOpacity": 1,
            "symbolBaseFillColor": self.quiet,
            "symbolBaseStrokeColor": self.quiet,
            "orient": "bottom",
            "direction": "horizontal",
            "columns": 2,
        }
        return {
            "background": self.background,
            "font": FONT,
            "view": {"stroke": None},
            "axis": axis,
            "legend": legend,
            "title": {
                "color": self.ink,
                "fontSize": 14,
                "fontWeight": 600,
                "anchor": "start",
                "offset": 12,
                "subtitleColor": self.quiet,
                "subtitleFontSize": 11,
            },
            "text": {"color": self.ink, "fontSize": 12},
            "rule": {"color": self.quiet},
            "mark": {"color": self.sides[0]},
            "range": {"category": list(self.sides)},
        }


LIGHT = Theme(
    background="#ffffff",
    ink="#1c2330",
    quiet="#5a6372",
    line="#e4e7ec",
    sides=(
        *("#0072b2", "#d55e00", "#009e73", "#b5579a", "#a06f00", "#3f9bd1"),
        *("#7a4fb5", "#8c2d04", "#4d7c0f", "#0f766e", "#be123c", "#6b6b6b"),
    ),
)
DARK = Theme(
    background="#151a22",
    ink="#e8ebf0",
    quiet="#a3acba",
    line="#2a313c",
    sides=(
        *("#5fb0ea", "#ff9255", "#36cfa2", "#e79bc9", "#efb945", "#9bd6f7"),
        *("#b99cf0", "#d98a6a", "#a3cf5b", "#5cc9c0", "#ff8fa5", "#b9b9b9"),
    ),
)
ON_PAGE = Theme(
    background=None,
    ink="var(--ink)",
    quiet="var(--quiet)",
    line="var(--line)",
    sides=tuple(f"var(--side-{number})" for number in range(1, len(LIGHT.sides) + 1)),
)
"""The theme the reader chose: the page's style sheet defines the colours, so charts need no
redrawing."""
