"""Read TOML that may be hostile.

``tomllib`` takes quadratic time and memory for a key of many parts (20 s and gigabytes for 20,000
in a file of 40 kB), and a value that it can still read may be nested too deeply for whatever uses
it. So the size of keys, the number of tables and the depth of values are limited here.
"""

from __future__ import annotations

import re
from typing import Any

import tomllib

from trainmark.workload.decode import DEEPEST, inside, require_shallow

MOST_PARTS = 16
"""Maximum number of parts of a dotted key or of the name of a table. Workloads and configurations
have at most six."""
MOST_TABLES = 12_000
"""Maximum number of tables, and of items in a list: a little more than a network may have
layers."""

_PART = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_TOKEN = re.compile(
    rf'''
    """(?:[^\\]|\\.)*?"""     # strings of several lines, which may contain anything
    | \'\'\'.*?\'\'\'
    | """.* | \'\'\'.*        # the same without an end: not TOML
    | \#[^\n]*                # a comment
    | (?P<key>{_PART}(?:[ \t]*\.[ \t]*{_PART})*)  # a key, or a value that looks like one
    | ["'][^\n]*              # a string without an end: not TOML
    ''',
    re.DOTALL | re.VERBOSE,
)
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


class TooLarge(ValueError):
    """A document that is larger than anything that trainmark reads.

    Args:
        expected: the limit.
        found: what exceeds it.
    """

    def __init__(self, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(f"{found}, but {expected} are read")


def parse(text: str) -> dict[str, Any]:
    """Return the tables of a TOML document.

    Args:
        text: the document.

    Raises:
        ValueError: it is not TOML.
        TooLarge: a key has too many parts, there are too many tables, or values are nested too
            deeply.
    """
    _require_short_keys(text)
    tables = sum(1 for _ in _TABLE.finditer(text))
    if tables > MOST_TABLES:
        raise TooLarge(f"at most {MOST_TABLES:,} tables", f"{tables:,}")
    try:
        data = tomllib.loads(text)
        require_shallow(data)
    except RecursionError as error:
        raise TooLarge(f"values nested at most {DEEPEST} deep", "deeper ones") from error
    _require_short_lists(data)
    return data


def _require_short_keys(text: str) -> None:
    for token in _TOKEN.finditer(text):
        key = token["key"]
        # Counting dots first is faster; those inside quotes don't separate parts.
        if key is None or key.count(".") < MOST_PARTS:
            continue
        parts = sum(1 for _ in re.finditer(_PART, key))
        if parts > MOST_PARTS:
            line = 1 + text.count("\n", 0, token.start())
            raise TooLarge(f"keys of at most {MOST_PARTS} parts", f"{parts:,} in line {line:,}")


def _require_short_lists(value: Any) -> None:
    if isinstance(value, list) and len(value) > MOST_TABLES:
        raise TooLarge(f"at most {MOST_TABLES:,} items in a list", f"{len(value):,}")
    for each in inside(value):
        _require_short_lists(each)
