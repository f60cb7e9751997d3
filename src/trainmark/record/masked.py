"""Mask the secrets in a new record, in every text that it has."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect, structs

from trainmark.masking import (
    Secrets,
    is_name_of_secret,
    mask,
    mask_command_line,
    mask_template,
)
from trainmark.record.record import Record

_LEFT_ALONE = frozenset(
    {
        # Values that are compared, and must differ between sides. Whoever makes a record masks the
        # other parts of these fields before the compared values are filled in.
        ("BackendRef", "style"),
        ("Group", "values"),
        ("Process", "argv"),
        ("Process", "environment"),
        ("Python", "label"),
        ("Record", "id"),
        ("WorkloadRef", "spec"),
        # References to the id of another record.
        ("Record", "slices_in"),
        ("Record", "weights_from"),
        # The name of a machine is no secret, but may look like one, as in sk-server-1.
        ("Machine", "name"),
        ("Spread", "host"),
    }
)
_PRINTED = ("NamedMetric", "Observed", "Outcome", "Process")
"""Parts with text that the measured process wrote itself. Only in these are the secrets that it was
given searched by their values: names elsewhere must not depend on the environment, since
``--resume`` compares them."""


def masked(record: Record, secrets: Secrets) -> Record:
    """Return ``record`` with all secrets masked.

    Args:
        record: a record of a run of this process.
        secrets: those that the run was given.
    """
    hidden: Record = _masked(record, _type_of_record(), Secrets(), secrets)
    return structs.replace(hidden, command=_masked_command(record.command))


def _masked_command(command: str) -> str:
    """Mask a command line; the call of a function is masked like any other text."""
    if command.startswith("trainmark "):
        with contextlib.suppress(ValueError):  # an open quote
            return mask_command_line(shlex.split(command))
    return mask(command)


@cache
def _type_of_record() -> inspect.Type:
    return inspect.type_info(Record)


def _masked(value: Any, kind: inspect.Type, here: Secrets, printed: Secrets) -> Any:
    """Mask the texts in ``value``; a value of a closed list, such as a status, is no text.

    Args:
        here: secrets that are searched by their values in this part.
        printed: the same, for the parts of :data:`_PRINTED`.
    """
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    for each in kinds:
        match each:
            case inspect.StrType() if isinstance(value, str):
                return here.mask(value)
            case inspect.AnyType():
                return masked_plain(value, here)
            case inspect.DictType() if isinstance(value, dict):
                return {key: _masked_item(key, item, here) for key, item in value.items()}
            case inspect.ListType() if isinstance(value, list):
                if isinstance(each.item_type, (inspect.FloatType, inspect.IntType)):
                    return value
                return [_masked(item, each.item_type, here, printed) for item in value]
            case inspect.VarTupleType() if isinstance(value, tuple):
                return tuple(_masked(item, each.item_type, here, printed) for item in value)
            case inspect.StructType() | inspect.DataclassType() if isinstance(value, each.cls):
                return _masked_fields(value, each, here, printed)
    return value


def _masked_fields(
    value: Any,
    kind: inspect.StructType | inspect.DataclassType,
    here: Secrets,
    printed: Secrets,
) -> Any:
    name = kind.cls.__name__
    if name in _PRINTED:
        here = printed
    changes = {}
    for field in kind.fields:
        before = getattr(value, field.name)
        left_alone = (name, field.name) in _LEFT_ALONE
        after = before if left_alone else _masked(before, field.type, here, printed)
        if after != before:
            changes[field.name] = after
    if not changes:
        return value
    if isinstance(value, msgspec.Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)


def _masked_item(key: Any, value: Any, here: Secrets) -> Any:
    """Mask one item of a mapping; its key may say that its value is a secret."""
    if isinstance(key, str) and isinstance(value, str) and is_name_of_secret(key):
        (hidden,) = mask_template([f"{key}={value}"])
        return hidden.removeprefix(f"{key}=")
    return masked_plain(value, here)


def masked_plain(value: Any, here: Secrets) -> Any:
    """Mask the texts in plain data, such as the settings that a backend reported.

    Args:
        value: lists, mappings, texts and numbers.
        here: secrets that are searched by their values, too.
    """
    if isinstance(value, str):
        return here.mask(value)
    if isinstance(value, dict):
        return {key: _masked_item(key, item, here) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(masked_plain(item, here) for item in value)
    return value
