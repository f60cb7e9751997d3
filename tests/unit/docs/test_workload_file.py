"""docs/workload-file.md and the code say the same: every key, its default and its choices, and no other."""

from __future__ import annotations

import dataclasses
import re
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from trainmark.data.catalog import CATALOG
from trainmark.workload import catalog, initializers, layers, losses, optimizers, pixels, published, schedule
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
    "input": {"standardize": pixels.Standardize, "distortions": pixels.Distortions},
    "optimizer": {"staircase": optimizers.Staircase},
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
    "model": layers.Layer,
    "initialisers": initializers.Initializer,
    "loss": losses.Loss,
    "optimizer": optimizers.Optimizer,
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


def default_of(field: dataclasses.Field[Any]) -> str:
    """As the page writes it."""
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return f'`{{ kind = "{made.kind}" }}`' if hasattr(made, "kind") else "its defaults"
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


def choices(hint: Any) -> set[str]:
    """The strings that a key may be, of those that may not be any string."""
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
    rows = tables(heading)["kind"]
    classes = {str(each.kind): each for each in get_args(KINDS[heading])}
    assert {bare(row[0]) for row in rows} == set(classes)
    for kind, into in classes.items():
        require_alike([row[1:] for row in rows if bare(row[0]) == kind and row[1] != "-"], into)


def test_what_stands_on_the_page_and_nowhere_in_a_class_is_what_the_catalogue_takes_off() -> None:
    known = {field.name for field in dataclasses.fields(Workload)}
    assert {bare(row[0]) for row in tables("At the top")["key"]} - known == FILE_ONLY


def test_every_dataset_is_named() -> None:
    (line,) = [line for line in PAGE.splitlines() if "**Data of your own.**" in line]
    assert set(re.findall(r"`([\w-]+)`", line)) - {"dataset"} == set(CATALOG)


def test_the_example_is_a_workload() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.S)
    assert lay_out(catalog.parse(text, "the page")).classes == 10
