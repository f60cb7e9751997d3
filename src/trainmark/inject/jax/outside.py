"""What a function uses that is not given to it: a compiled function keeps what it was at first."""

from __future__ import annotations

from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import jax


class _Missing:
    """Stands for a value that does not exist yet."""


_CONSTANT = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type,
    BuiltinFunctionType,
    FunctionType,
    ModuleType,
    jax.Array,
)
"""Kinds of values that stay as they are."""


def from_outside(function: FunctionType) -> list[Any]:
    """Return a function's defaults, the values that it closes over, and its globals."""
    named = sorted((function.__kwdefaults__ or {}).items())
    cells = map(_content, function.__closure__ or ())
    names = sorted(_names(function.__code__))
    every = function.__globals__
    values = [every[name] for name in names if name in every]
    return [*(function.__defaults__ or ()), *(value for _, value in named), *cells, *values]


def is_constant(value: Any) -> bool:
    """Whether a value can't have changed, so that its identity tells that it is the same."""
    if isinstance(value, tuple):
        return all(map(is_constant, value))
    return isinstance(value, _CONSTANT) or "Unspecified" in type(value).__name__


def are_same(these: list[Any], those: list[Any]) -> bool:
    """Whether two lists of constant values are the same."""
    if len(these) != len(those):
        return False
    pairs = zip(these, those)  # noqa: B905  (Python 3.8)
    return all(one is other or _is_equal(one, other) for one, other in pairs)


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two numbers, texts or tuples of them are equal."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return are_same(list(one), list(other))
    simple = (bool, int, float, complex, str, bytes)
    return type(one) is type(other) and isinstance(one, simple) and bool(one == other)


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a function and in those inside of it."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return _Missing
