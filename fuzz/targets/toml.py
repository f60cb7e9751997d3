"""Workloads in TOML: a network that can be laid out and shown, or SpecError; and it can be sent to
the child."""

from __future__ import annotations

import json
import random
from typing import Any

import tomllib

from fuzz.screen import drawn
from fuzz.structure import changed
from trainmark.errors import UsageError
from trainmark.report.layer_table import layer_data, layer_table
from trainmark.workload import catalog
from trainmark.workload.schedule import epoch_sizes
from trainmark.workload.spec import Workload

EXAMPLES = 60_000


def one(data: bytes) -> None:
    """Read one input, a whole file."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        workload = catalog.parse(text, "mine.toml")
    except UsageError as error:
        assert str(error)
        return
    assert Workload.from_data(json.loads(json.dumps(workload.to_data()))) == workload
    assert workload.step_fingerprint != workload.schedule_fingerprint
    drawn([layer_table(workload)])
    json.dumps(layer_data(workload))
    try:
        sizes = epoch_sizes(workload.schedule, workload.batches, EXAMPLES)
    except UsageError:
        return
    assert all(len(epoch) <= EXAMPLES * workload.schedule.dataset_repeats for epoch in sizes[:1])


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """Mutate its values instead of its characters, half of the time."""
    import atheris

    chance = random.Random(seed)
    try:
        values = tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return bytes(atheris.Mutate(data, most))
    if not values or chance.random() < 0.4:
        return bytes(atheris.Mutate(data, most))
    try:
        other = changed(values, chance)
    except RecursionError:
        other = None
    if not isinstance(other, dict):
        return bytes(atheris.Mutate(data, most))
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in other.items()).encode(
        "utf-8", "replace"
    )[:most]


def _key(key: str) -> str:
    return json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if value is None:
        return '""'
    return json.dumps(value, default=str).replace("Infinity", "inf").replace("NaN", "nan")
