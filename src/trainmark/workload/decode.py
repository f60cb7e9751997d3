"""Strict decoding of plain data (TOML, JSON) into frozen dataclasses.

The measured process may import only the standard library and NumPy, and msgspec doesn't support
tagged unions of dataclasses; so the few types that a workload needs are decoded here, the same way
on both sides of the pipe (``docs/decisions/0003-workloads-are-dataclasses.md``).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import types
import typing
from collections.abc import Callable, Iterable
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from trainmark.errors import nearest

T = TypeVar("T")
_LONGEST = 100
"""Longest name that is looked up or shown."""
DEEPEST = 64
"""Maximum depth of nested values from outside, far below the limit of Python's recursion."""
Path = tuple[str | int, ...]

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


class Misfit(ValueError):
    """Data that does not fit its type, at ``path``.

    A constructor raises it with only the field in the path; :func:`decode` prepends the path to the
    dataclass.
    """

    def __init__(self, path: Path, expected: str, found: str) -> None:
        self.path = path
        self.expected = expected
        self.found = found
        super().__init__(f"{dotted(path)}: expected {expected}, found {found}")


def require(holds: bool, field: str, expected: str, found: object) -> None:
    """Raise :class:`Misfit` for ``field`` unless ``holds``; for use in ``__post_init__``."""
    if not holds:
        raise Misfit((field,), expected, short(repr(found)))


class Bound(NamedTuple):
    """A condition on a value, with its text for errors.

    It is used in the :data:`typing.Annotated` type of a field.
    """

    holds: Callable[[Any], bool]
    expected: str


def _is_positive(value: float) -> bool:
    return value > 0


def _is_not_negative(value: float) -> bool:
    return value >= 0


def _is_share(value: float) -> bool:
    return 0 <= value < 1


Positive = Annotated[float, Bound(_is_positive, "a number above 0")]
NotNegative = Annotated[float, Bound(_is_not_negative, "a number from 0")]
Share = Annotated[float, Bound(_is_share, "a number of at least 0 and below 1")]
Count = Annotated[int, Bound(_is_positive, "a whole number above 0")]


class Bounded:
    """A dataclass that rejects values outside the bounds in the types of its fields."""

    def __post_init__(self) -> None:
        # A class can be hashed
        for name, bound in annotations_of(type(self)).items():  # type: ignore[arg-type]
            value = getattr(self, name)
            for each in value if isinstance(value, tuple) else (value,):
                require(each is None or bound.holds(each), name, bound.expected, value)


@cache
def annotations_of(kind: type) -> dict[str, Any]:
    """Return the bounds of the fields of ``kind``.

    Those of a union hold for each number, not for None.
    """
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for part in (hint, *get_args(hint)):
            if get_origin(part) is Annotated:
                found[name] = part.__metadata__[0]
    return found


def require_shallow(*values: object) -> None:
    """Raise RecursionError for lists and tables that are nested too deeply to process safely."""
    layer = list(values)
    for _ in range(DEEPEST + 1):
        layer = list(itertools.chain.from_iterable(map(inside, layer)))
        if not layer:
            return
    raise RecursionError(f"nested deeper than {DEEPEST}")


def inside(value: object) -> Iterable[Any]:
    """Return the items of a list or of a table; nothing for any other value."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def dotted(path: Path) -> str:
    """Format ``('model', 2, 'units')`` as ``model[2].units``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = str(part)[:_LONGEST]
            text += f".{name}" if text else name
    return text


def decode(into: type[T], data: object, path: Path = ()) -> T:
    """Decode ``data`` into an instance of ``into``.

    Args:
        into: a dataclass with fields of type bool, int, float, str, Literal, tuple (also named),
            frozenset, dictionary (kept unchanged), union with None, dataclass, or union of
            dataclasses distinguished by their field ``kind``.
        data: what a TOML or JSON reader returned.
        path: where ``data`` is, for the message.

    Raises:
        Misfit: a wrong type, a missing or unknown key, or a value that the dataclass rejects.
    """
    return typing.cast(T, _decode(into, data, path))


def _decode(into: Any, data: object, path: Path) -> Any:
    origin = get_origin(into)
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(into), data, path)
    if origin is Literal:
        if data not in get_args(into) or isinstance(data, bool):
            raise Misfit(
                path, " or ".join(repr(choice) for choice in get_args(into)), _describe(data)
            )
        return data
    if origin is tuple:
        return _decode_tuple(get_args(into), data, path)
    if origin is frozenset:
        return frozenset(_decode_tuple((*get_args(into), ...), data, path))
    if origin is dict and isinstance(data, dict):
        return data
    if isinstance(into, type) and issubclass(into, tuple):
        return into(*_decode_tuple(tuple(get_type_hints(into).values()), data, path))
    if dataclasses.is_dataclass(into):
        return _decode_dataclass(typing.cast(type, into), data, path)
    if into is float and isinstance(data, (int, float)) and not isinstance(data, bool):
        return _finite(data, path)
    if not isinstance(data, into) or (into is not bool and isinstance(data, bool)):
        raise Misfit(path, _WORDS[into], _describe(data))
    return data


def _finite(data: float, path: Path) -> float:
    try:
        number = float(data)
    except OverflowError:  # an integer with hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise Misfit(path, "a finite number", _describe(data))
    return number


def _decode_union(choices: tuple[Any, ...], data: object, path: Path) -> Any:
    if data is None and type(None) in choices:
        return None
    classes = {
        str(_fields(choice)["kind"][1].default): choice
        for choice in choices
        if isinstance(choice, type)
        and dataclasses.is_dataclass(choice)
        and "kind" in _fields(choice)
    }
    literals = [choice for choice in choices if get_origin(choice) is Literal]
    words = list(itertools.chain.from_iterable(get_args(choice) for choice in literals))
    if classes and data in words:
        return data
    plain = [
        choice
        for choice in choices
        if dataclasses.is_dataclass(choice) and choice not in classes.values()
    ]
    if classes and plain and not (isinstance(data, dict) and "kind" in data):
        return _decode(plain[0], data, path)
    if classes:
        if not isinstance(data, dict):
            expected = " or ".join([*map(repr, words), "a table with a key 'kind'"])
            raise Misfit(path, expected, _describe(data))
        kind = data.get("kind")
        if not isinstance(kind, str) or kind not in classes:
            raise Misfit(
                (*path, "kind"),
                f"one of {', '.join(sorted(classes))}{did_you_mean(kind, classes)}",
                _describe(kind),
            )
        return _decode(classes[kind], data, path)
    problems = []
    for choice in choices:
        if choice is type(None):
            continue
        try:
            return _decode(choice, data, path)
        except Misfit as misfit:
            if len(misfit.path) > len(path):
                raise
            problems.append(misfit.expected)
    raise Misfit(path, " or ".join(problems), _describe(data))


def _decode_tuple(arguments: tuple[Any, ...], data: object, path: Path) -> tuple[Any, ...]:
    if not isinstance(data, (list, tuple)):
        raise Misfit(path, "a list", _describe(data))
    if len(arguments) == 2 and arguments[1] is ...:
        return tuple(_decode(arguments[0], item, (*path, index)) for index, item in enumerate(data))
    if len(data) != len(arguments):
        raise Misfit(path, f"a list of {len(arguments)}", f"a list of {len(data)}")
    return tuple(
        _decode(argument, item, (*path, index))
        for index, (argument, item) in enumerate(zip(arguments, data, strict=True))
    )


def _decode_dataclass(into: type, data: object, path: Path) -> Any:
    if not isinstance(data, dict):
        raise Misfit(path, "a table", _describe(data))
    fields = _fields(into)
    for key in data:
        if key not in fields:
            raise Misfit(
                (*path, key),
                f"one of {', '.join(sorted(fields))}{did_you_mean(key, fields)}",
                f"the key {_describe(key)}",
            )
    missing = [name for name, (_, field) in fields.items() if name not in data and _required(field)]
    if missing:
        *others, last = map(repr, missing)
        keys = f"the keys {', '.join(others)} and {last}" if others else f"the key {last}"
        raise Misfit(path, keys, f"no such key{'s' * bool(others)}" if data else "an empty table")
    arguments = {
        name: _decode_field(*fields[name], value, (*path, name)) for name, value in data.items()
    }
    try:
        return into(**arguments)
    except Misfit as misfit:
        raise Misfit(path + misfit.path, misfit.expected, misfit.found) from None


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _decode_field(hint: Any, field: dataclasses.Field[Any], data: object, path: Path) -> Any:
    """Decode by type; errors about a list with named places show the names."""
    try:
        return _decode(hint, data, path)
    except Misfit as misfit:
        if misfit.path != path or "places" not in field.metadata:
            raise
        raise Misfit(path, field.metadata["places"], misfit.found) from None


@cache
def _fields(into: type) -> dict[str, tuple[Any, dataclasses.Field[Any]]]:
    hints = get_type_hints(into)
    return {field.name: (hints[field.name], field) for field in dataclasses.fields(into)}


def did_you_mean(name: object, known: typing.Iterable[str]) -> str:
    """Return a question after the nearest of the ``known`` names, in parentheses.

    The result is empty if none is near.
    """
    found = [] if name is None else nearest(str(name), known)
    return f" (did you mean {found[0]}?)" if found else ""


def _describe(data: object) -> str:
    if data is None:
        return "nothing"
    if isinstance(data, (dict, list, tuple)):
        return "a table" if isinstance(data, dict) else "a list"
    return short(repr(data))


def short(text: str) -> str:
    """Shorten a text for an error."""
    return text if len(text) <= 60 else text[:57] + "..."
