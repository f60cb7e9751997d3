"""Public dataclasses, records and option dictionaries document every field, which pydoclint does
not check."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import is_typeddict

import pytest

from trainmark import api
from trainmark.backends import base
from trainmark.record import record
from trainmark.study import options
from trainmark_conformance import cases

SECTION = re.compile(r"^(?:Args|Attributes):\n((?: {4}.*\n|\n)+)", re.MULTILINE)
NAME = re.compile(r"^ {4}(\w+):", re.MULTILINE)


def fields(kind: type) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(
        kind.__annotations__ if is_typeddict(kind) else getattr(kind, "__struct_fields__", ())
    )


def documented(kind: type) -> list[str]:
    section = SECTION.search(f"{inspect.getdoc(kind)}\n")
    return NAME.findall(section[1]) if section else []


CLASSES = [
    kind
    for module in (api, base, cases, options, record)
    for name, kind in inspect.getmembers(module, inspect.isclass)
    if kind.__module__ == module.__name__ and not name.startswith("_") and fields(kind)
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_field_is_documented(kind: type) -> None:
    """The names are in order; a class may leave inherited fields to its base."""
    own = list(inspect.get_annotations(kind))
    assert documented(kind) in (fields(kind), own)


def test_all_kinds_of_classes_are_found() -> None:
    assert {api.Compared, base.Capabilities, cases.Case, options.RunOptions, record.Record} <= set(
        CLASSES
    )
