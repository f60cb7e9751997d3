"""An image in a terminal: two pixels per character with colours, otherwise in shades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rich.console import Console

_SHADES = " ░▒▓█"


def draw_image(screen: Console, image: NDArray[Any]) -> None:
    """Print ``[height, width, channels]`` of bytes, with one or three channels."""
    from rich.text import Text

    if screen.color_system is None:
        for greys in image.mean(axis=2):
            shades = (_SHADES[int(grey * len(_SHADES) / 256)] for grey in greys)
            screen.print(Text("".join(2 * shade for shade in shades).rstrip()))
        return
    colours = np.broadcast_to(image, (*image.shape[:2], 3))
    for row in range(0, len(colours), 2):
        upper = colours[row]
        lower = colours[min(row + 1, len(colours) - 1)]
        line = Text()
        for above, below in zip(upper, lower, strict=True):
            line.append("▀", style=f"#{above.tobytes().hex()} on #{below.tobytes().hex()}")
        screen.print(line)
