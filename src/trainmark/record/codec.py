"""Encode records as JSON and decode them, with strict types and non-finite numbers as strings.

A published figure is NaN, so it must be kept, but JSON has no such number and msgspec writes
``null`` for it.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
from msgspec import inspect

from trainmark.errors import ForeignRecord, NewerRecord
from trainmark.record.record import SCHEMA_VERSION, Record
from trainmark.workload.decode import DEEPEST, require_shallow, short

_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode(record: Record) -> bytes:
    """Return the JSON text of ``record``: readable, but small, with one line per top-level key."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
        for key, value in to_plain(record).items()
    )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    return text.encode(errors="replace")  # a command line need not be Unicode


def content(record: Record) -> bytes:
    """Return bytes that are equal for equal records, even with NaN, and fast to compute."""
    try:
        return msgspec.msgpack.encode(record)
    except UnicodeEncodeError:  # from a command line that is not Unicode
        return encode(record)


def to_plain(value: Any) -> Any:
    """Convert to plain lists, dictionaries, numbers and strings; other numbers become strings."""
    return _without_non_finite(msgspec.to_builtins(value))


def decode(text: bytes, origin: str) -> Record:
    """Decode the record in ``text``.

    Args:
        text: content of a JSON file.
        origin: name of the file for errors.

    Raises:
        ForeignRecord: the text is empty, not JSON, or not a record.
        NewerRecord: the schema is newer than this trainmark's.
    """
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        found = f"a file that is not JSON ({error})" if text.strip() else "an empty file"
        raise _foreign(origin, found) from error
    if not isinstance(data, dict) or "schema_version" not in data:
        raise _foreign(origin, "JSON without the key 'schema_version'")
    version = data["schema_version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _foreign(origin, f"schema_version {short(repr(version))}")
    if version < SCHEMA_VERSION:
        raise _foreign(origin, f"schema version {version}, which was never released")
    if version > SCHEMA_VERSION:
        raise NewerRecord(
            f"{origin} was written by a newer trainmark",
            expected=f"schema version {SCHEMA_VERSION}",
            found=f"version {short(repr(version))}",
            fix="Update trainmark: pip install --upgrade trainmark",
        )
    try:
        # Converting takes time, and most records have no such number.
        if any(f'"{name}"'.encode() in text for name in _NON_FINITE):
            data = _with_non_finite(data, inspect.type_info(Record))
        record = msgspec.convert(data, Record)
        content(record)
        require_shallow(
            record.workload.spec, record.backend.settings, record.peaks and record.peaks.conditions
        )
    except msgspec.ValidationError as error:
        raise _foreign(origin, str(error)) from error
    except RecursionError as error:
        raise _foreign(origin, f"values nested deeper than {DEEPEST}") from error
    except OverflowError as error:  # no count is that high, and later arithmetic with it would fail
        raise _foreign(origin, "an integer of more than 64 bits") from error
    return record


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a record."""
    described = _with_string_numbers(msgspec.json.schema(Record))
    # The version has a default, but readers need it.
    described["$defs"]["Record"]["required"].insert(0, "schema_version")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trainmark record",
        **described,
    }


def _with_string_numbers(part: Any) -> Any:
    """Allow the three strings wherever a number is expected, which msgspec can't express."""
    if isinstance(part, list):
        return [_with_string_numbers(item) for item in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") == "number":
        return {"anyOf": [part, {"enum": list(_NON_FINITE)}]}
    return {key: _with_string_numbers(value) for key, value in part.items()}


def _foreign(origin: str, found: str) -> ForeignRecord:
    return ForeignRecord(
        f"{origin} is not a trainmark record",
        expected=f"a record of schema version {SCHEMA_VERSION}",
        found=found,
        fix="Leave it out; if it is in a folder of records, move it elsewhere.",
    )


def _without_non_finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "nan"
        return "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {key: _without_non_finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_non_finite(item) for item in value]
    return value


def _with_non_finite(value: Any, kind: inspect.Type) -> Any:
    """Convert strings back to numbers, where the schema has one: a name may be 'nan', too."""
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    if isinstance(value, str) and any(isinstance(each, inspect.FloatType) for each in kinds):
        return _NON_FINITE.get(value, value)
    for each in kinds:
        if isinstance(value, dict) and isinstance(
            each, (inspect.StructType, inspect.DataclassType)
        ):
            types = {field.encode_name: field.type for field in each.fields}
            return {
                key: _with_non_finite(item, types[key]) if key in types else item
                for key, item in value.items()
            }
        if isinstance(value, list) and isinstance(each, inspect.ListType):
            return [_with_non_finite(item, each.item_type) for item in value]
    return value
