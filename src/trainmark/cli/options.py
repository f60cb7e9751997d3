"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

DEFAULT_OUT = Path("trainmark-results")

Decorator = Callable[[Any], Any]

data_dir_option: Decorator = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder with the datasets; before TRAINMARK_DATA, the cache and the mirrors.",
)
out_option: Decorator = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=DEFAULT_OUT,
    show_default=True,
    metavar="DIR",
    help="Folder for the records.",
)


def split_names(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001
    """``a,b`` and repeated options alike, in order, each once."""
    return tuple(dict.fromkeys(name.strip() for part in value for name in part.split(",") if name.strip()))


def names_option(flag: str, text: str, metavar: str) -> Decorator:
    """An option that takes a list of names."""
    made: Decorator = click.option(flag, multiple=True, callback=split_names, metavar=metavar, help=text)
    return made


def environment_dir() -> Path | None:
    """The folder that TRAINMARK_DATA names."""
    folder = os.environ.get("TRAINMARK_DATA")
    return Path(folder) if folder else None


def cache_dir() -> Path:
    """Where trainmark keeps its own copies of datasets."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("trainmark"))
