"""docs/workload-file.md and the code say the same: every key, its default and its choices, and no
other."""

from __future__ import annotations

import dataclasses
import re
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from trainmark.data.catalog import CATALOG
from trainmark.workload import (
    catalog,
    initializers,
    layers,
    losses,
    optimizers,
    pixels,
    published,
    schedule,
    tokens,
)
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

PAGE = (Path(__file__).parents[3] / "docs" / "workload-file.md").read_text("utf-8")
FILE_ONLY = {"variants", "position"}
"""Keys that workload/catalog takes off before a workload is decoded."""

PLAIN = {
    "At the top": Workload,
    "input": pixels.Input,
    "batches": schedule.Batches,
    "schedule": schedule.Schedule,
    "metrics": schedule.Metrics,
    "weight_average": optimizers.WeightAverage,
}
NAMED = {
    "input": {
        "standardize": pixels.Standardize,
        "distortions": pixels.Distortions,
        "augment": pixels.Augmentation,
    },
    "optimizer": {"staircase": optimizers.Staircase, "groups": optimizers.Group},
    "schedule": {"until": schedule.Target},
    "published": {
        "published": published.Published,
        "published.runs": published.PublishedRun,
        "published.runs.values": published.PublishedValue,
        "published.runs.values.seeds": published.Seeds,
        "published.runs.timings": published.PublishedTiming,
        "published.runs.log": published.PublishedEpoch,
    },
}
KINDS = {
    "input": (tokens.Tokens,),
    "model": get_args(layers.Layer),
    "initialisers": get_args(initializers.Initializer),
    "loss": get_args(losses.Loss),
    "optimizer": get_args(optimizers.Optimizer),
    "lr_schedule": get_args(optimizers.LearningRateSchedule),
}


def tables(heading: str) -> dict[str, list[list[str]]]:
    """The rows of the tables under a heading, by the name of the first column."""
    section = re.split(r"^## ", PAGE, flags=re.M)
    (text,) = [each for each in section if each.startswith(heading + "\n")]
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            rows = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in ("key", "kind", "section"):
            rows = found.setdefault(cells[0], [])
        elif not cells[0].startswith("---"):
            rows.append(cells)
    return found


def bare(cell: str) -> str:
    return cell.strip("`")


def names(cell: str) -> list[str]:
    """Return the kinds that a row is about."""
    return re.findall(r"`([\w-]+)`", cell)


def default_of(field: dataclasses.Field[Any]) -> str:
    """Format a value as the page does."""
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return f"`{{ {', '.join(inline(made))} }}`" if hasattr(made, "kind") else "its defaults"
    value = field.default
    if value is dataclasses.MISSING:
        return "required"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value == ():
        return "`[]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"


def inline(made: Any) -> list[str]:
    """Return its kind and the keys without a default, as in a TOML file."""
    required = [
        field.name for field in dataclasses.fields(made) if field.default is dataclasses.MISSING
    ]
    return [f'kind = "{made.kind}"', *(f"{name} = {getattr(made, name)}" for name in required)]


def choices(hint: Any) -> set[str]:
    """Return the strings that a key may be; empty if it may be any string."""
    if get_origin(hint) is Literal:
        return {each for each in get_args(hint) if isinstance(each, str)}
    if get_origin(hint) in (Union, types.UnionType):
        return set().union(*(choices(each) for each in get_args(hint)))
    return set()


def require_alike(rows: list[list[str]], into: type) -> None:
    """``rows``: key, type, default, meaning."""
    fields = {field.name: field for field in dataclasses.fields(into) if field.name != "kind"}
    hints = get_type_hints(into)
    assert [bare(row[0]) for row in rows] == list(fields), into.__name__
    for row in rows:
        name = bare(row[0])
        assert row[2] == default_of(fields[name]), f"{into.__name__}.{name}"
        if expected := choices(hints[name]):
            assert set(re.findall(r'`"([^"]+)"`', row[1])) == expected, f"{into.__name__}.{name}"


@pytest.mark.parametrize("heading", PLAIN)
def test_the_keys_of_a_section_are_those_of_its_class(heading: str) -> None:
    rows = [row for row in tables(heading)["key"] if bare(row[0]) not in FILE_ONLY]
    require_alike(rows, PLAIN[heading])


@pytest.mark.parametrize("heading", NAMED)
def test_the_keys_of_a_part_are_those_of_its_class(heading: str) -> None:
    rows = tables(heading)["section"]
    assert list(dict.fromkeys(bare(row[0]) for row in rows)) == list(NAMED[heading])
    for name, into in NAMED[heading].items():
        require_alike([row[1:] for row in rows if bare(row[0]) == name], into)


@pytest.mark.parametrize("heading", KINDS)
def test_the_kinds_and_their_keys_are_those_of_the_classes(heading: str) -> None:
    """A row is about one kind, several, or ``all``; one of two cells is about a kind without
    keys."""
    rows = tables(heading)["kind"]
    classes = {str(each.kind): each for each in KINDS[heading]}
    assert {kind for row in rows for kind in names(row[0])} == set(classes)
    for kind, into in classes.items():
        its = [row[1:] for row in rows if kind in names(row[0]) or row[0] == "all"]
        require_alike([row for row in its if len(row) > 1], into)


def test_keys_only_on_the_page_are_those_the_catalogue_removes() -> None:
    known = {field.name for field in dataclasses.fields(Workload)}
    assert {bare(row[0]) for row in tables("At the top")["key"]} - known == FILE_ONLY


def test_every_dataset_is_named() -> None:
    (line,) = [line for line in PAGE.splitlines() if "**Data of your own.**" in line]
    assert set(re.findall(r"`([\w-]+)`", line)) - {"dataset"} == set(CATALOG)


def test_the_example_is_a_workload() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.S)
    assert lay_out(catalog.parse(text, "the page")).classes == 10
