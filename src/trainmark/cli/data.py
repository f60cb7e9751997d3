"""``trainmark data``: list, fetch, verify and show datasets."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from trainmark.cli import complete
from trainmark.cli.list import datasets
from trainmark.cli.options import data_dir_option
from trainmark.cli.output import json_option, print_json, terminal_observer
from trainmark.data.cache import cache_dir, environment_dir
from trainmark.data.catalog import CATALOG, SplitName, find
from trainmark.errors import UsageError
from trainmark.report.console import console

EPILOG = """\b
Examples:
  trainmark data list
  trainmark data fetch mnist
  trainmark data verify cifar10 --data-dir /data
  trainmark data show mnist --split train --index 59999
"""

_TOKENS_SHOWN = 200
"""Maximum number of tokens that ``show`` prints."""

_SOURCES = {
    "named": "from --data-dir",
    "environment": "from TRAINMARK_DATA",
    "cache": "the cache",
    "download": "the cache, just downloaded",
    "drawn": "the cache, just generated",
    "memory": "generated in memory by each run",
}


@click.command("data", epilog=EPILOG)
@click.argument("action", type=click.Choice(("list", "fetch", "verify", "show")))
@click.argument(
    "names", nargs=-1, metavar="[NAME]...", shell_complete=complete.one_of(complete.datasets)
)
@click.option(
    "--split",
    type=click.Choice(("train", "test")),
    default="test",
    show_default=True,
    help="Split to show.",
)
@click.option(
    "--index",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Example or token, from 0.",
)
@data_dir_option
@json_option
def command(
    action: str,
    names: tuple[str, ...],
    split: SplitName,
    index: int,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """List, fetch, verify or show datasets.

    `list` shows which datasets you have and where, by file names only. `fetch` downloads or
    generates missing datasets into the cache. `verify` checks every byte of the datasets you have,
    without downloading. `show` draws an example.
    """
    if action == "show":
        _show(names, split, index, data_dir, as_json=as_json)
        return
    if action == "list":
        rows = _listed(names, data_dir)
        describe = _listing
    else:
        rows = _located(names, data_dir, download=action == "fetch")
        describe = _sentence
    if as_json:
        print_json(rows)
        return
    screen = console()
    for row in rows:
        screen.print(describe(row), soft_wrap=True, markup=False)


def _show(
    names: tuple[str, ...], split: SplitName, index: int, data_dir: Path | None, *, as_json: bool
) -> None:
    from trainmark.data.load import load
    from trainmark.report.terminal_image import draw_image

    if len(names) != 1:
        raise UsageError(
            "show takes one dataset", expected="one NAME", found=", ".join(names) or "none"
        )
    (row,) = _located(names, data_dir, download=True)
    known = find(row["name"])
    part = getattr(load(row["name"], row["directory"] and Path(row["directory"])), split)
    what = "token" if known.is_text else "example"
    count = len(part.tokens) if known.is_text else len(part)
    if index >= count:
        raise UsageError(
            f"there is no {what} {index:,} in the {split} split of {row['name']}",
            expected=f"an index from 0 to {count - 1:,}",
        )
    data = {"name": row["name"], "split": split, "index": index}
    if known.is_text:  # from this token on
        tokens = part.tokens[index : index + _TOKENS_SHOWN].tolist()
        words = [str(known.classes[token]) for token in tokens]
        between = "" if all(len(word) == 1 for word in words) else " "
        text = between.join(words)
        data |= {"tokens": tokens, "text": text}
        where = f"tokens {index:,} to {index + len(tokens) - 1:,}"
    else:
        label = int(part.labels[index])
        image = part.images[index]
        data |= {"label": label, "class": str(known.classes[label]), "pixels": image.tolist()}
        where = f"example {index:,}: {known.classes[label]}"
    if as_json:
        print_json(data)
        return
    screen = console()
    if known.is_text:
        screen.print(text, markup=False)
    else:
        draw_image(screen, image)
    screen.print(f"{row['name']}, {split} {where}", markup=False)


def _listed(names: tuple[str, ...], data_dir: Path | None) -> list[dict[str, Any]]:
    from trainmark.data.locate import glimpse

    wanted = [find(name).name for name in names] or list(CATALOG)
    seen = partial(glimpse, named=data_dir, environment=environment_dir(), cache=cache_dir())
    rows = []
    for row in datasets():
        if row["name"] in wanted:
            found = seen(row["name"])
            place = None if found.directory is None else str(found.directory)
            own = {"directory": place, "problem": found.problem or None}
            rows.append(row | asdict(found) | own)
    return rows


def _located(
    names: tuple[str, ...], data_dir: Path | None, *, download: bool
) -> list[dict[str, Any]]:
    from trainmark.data.locate import locate

    located = partial(
        locate, named=data_dir, environment=environment_dir(), cache=cache_dir(), download=download
    )
    there = []
    if not download:
        listed = _listed((), data_dir)
        there = [row["name"] for row in listed if row["directory"] or row["problem"]]
    rows = []
    with terminal_observer().preparing() as progress:
        for name in names or there or CATALOG:
            found = located(name, progress=progress)
            place = None if found.directory is None else str(found.directory)
            rows.append(asdict(found) | {"directory": place})
    return rows


def _size(row: dict[str, Any]) -> str:
    what = "tokens" if CATALOG[row["name"]].is_text else "examples"
    return f"{row['train_examples']:,} training and {row['test_examples']:,} test {what}"


def _listing(row: dict[str, Any]) -> str:
    what = f"{row['name']}: {row['title']} ({_size(row)})"
    if row["problem"] is not None:
        return f"{what}; unusable: {row['problem']}"
    if row["directory"] is not None:
        part = "" if row["complete"] else ", but only part of it"
        return f"{what}; available{part}, in {row['directory']} ({_SOURCES[row['source']]})"
    if row["source"] == "memory":
        return f"{what}; {_SOURCES['memory']}"
    if CATALOG[row["name"]].drawn:
        return f"{what}; generated when needed"
    fetch = f"trainmark data fetch {row['name']}"
    return f"{what}; not found: use --data-dir DIR, TRAINMARK_DATA=DIR, or {fetch}"


def _sentence(row: dict[str, Any]) -> str:
    size = _size(row)
    if row["directory"] is None:
        return f"{row['name']}: {size}, {_SOURCES[row['source']]}"
    part = "" if row["complete"] else ", but only part of it"
    where = f"{row['directory']} ({_SOURCES[row['source']]})"
    return f"{row['name']}: verified{part}, {size}, in {where}"
