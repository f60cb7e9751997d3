"""A picture of the terminal as an SVG file that works offline, in light and dark pages.

rich draws it. Its own format loads a font from a content network and has one theme; ours uses the
reader's fonts, and both themes, between which the reader's browser chooses.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainmark.report.console import draw_all, new_console
from trainmark.report.table import Table

if TYPE_CHECKING:
    from rich.terminal_theme import TerminalTheme

WIDTH = 100
"""Width in characters, as wide as most pages show without scrolling."""
_ID = "trainmark"
"""The same name in both themes, so that one can replace the styles of the other."""
_ANSI = (
    ((0, 0, 0), (179, 29, 40), (17, 99, 41), (125, 78, 0), (5, 80, 174)),
    ((0, 0, 0), (255, 123, 114), (63, 185, 80), (210, 153, 34), (88, 166, 255)),
)
"""Black, red, green, yellow and blue with enough contrast on a light and on a dark page."""
_TEXT = ((31, 35, 40), (230, 237, 243))
_PAGE = ((255, 255, 255), (13, 17, 23))
_PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, monospace; }}
.{unique_id}-page {{ fill: LIGHT_PAGE; }}
{styles}
@media (prefers-color-scheme: dark) {{
.{unique_id}-page {{ fill: DARK_PAGE; }}
DARK_STYLES
}}
</style>
<defs>{lines}</defs>
<rect class="{unique_id}-page" width="{width}" height="{height}" rx="8"/>
<g transform="translate({terminal_x}, 24)"><g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def picture(tables: Sequence[Table], command_line: str) -> str:
    """Return an SVG of what the command prints.

    Args:
        command_line: shown above the tables, after a prompt.
    """
    light, dark = (_theme(number) for number in range(2))
    screen = new_console(file=io.StringIO(), record=True, width=WIDTH)
    screen.print(f"$ {command_line}", markup=False, style="bold")
    screen.print()
    draw_all(screen, tables)
    dark_styles = screen.export_svg(theme=dark, unique_id=_ID, clear=False, code_format="{styles}")
    drawn = screen.export_svg(theme=light, unique_id=_ID, code_format=_PICTURE)
    return (
        drawn.replace("LIGHT_PAGE", _hexadecimal(_PAGE[0]))
        .replace("DARK_PAGE", _hexadecimal(_PAGE[1]))
        .replace("DARK_STYLES", dark_styles)
    )


def _theme(number: int) -> TerminalTheme:
    from rich.terminal_theme import TerminalTheme

    colours = [*_ANSI[number], *[_TEXT[number]] * 3]
    return TerminalTheme(_PAGE[number], _TEXT[number], colours)


def _hexadecimal(colour: tuple[int, int, int]) -> str:
    return "#" + bytes(colour).hex()
