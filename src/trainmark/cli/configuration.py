"""Defaults of options from a file.

It is ``trainmark.toml``, or ``[tool.trainmark]`` in ``pyproject.toml``. The nearest of this folder
and those above it holds. A key is an option without its dashes and holds for every verb that has
the option; a table named after a verb holds for that verb alone. What is typed wins, then an
environment variable ``TRAINMARK_OPTION``, then the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from trainmark import regular
from trainmark.errors import UsageError, nearest
from trainmark.workload import toml_text

NAME = "trainmark.toml"
"""Name of the file that has options alone."""
SHARED = "pyproject.toml"
"""Name of the file that has them in a table, next to other tools' settings."""
MOST_BYTES = 1 << 20
"""Maximum size of a file, in bytes, so that a wrong one doesn't fill the memory."""


@dataclass(frozen=True)
class Configuration:
    """The options in a file; empty if there is none.

    Args:
        path: keys of its table, such as ``("tool", "trainmark")``.
    """

    file: Path | None = None
    text: str = ""
    path: tuple[str, ...] = ()
    table: Mapping[str, Any] = field(default_factory=dict)

    def defaults(
        self, verb: str, verbs: Iterable[str], find: Callable[[str], click.Command]
    ) -> dict[str, Any]:
        """The values for the options of ``verb``, by parameter.

        Args:
            verbs: names of all verbs.
            find: returns the command of a verb.

        Raises:
            UsageError: an unknown key, or a value that its option does not take; says file and
                line.
        """
        known = options_of(find(verb))
        found = dict[str, Any]()
        own = self.table.get(verb, {})
        if not isinstance(own, dict):
            raise self._error((verb,), "a table", own)
        for key, value in self.table.items():
            if key in known:
                found[known[key].name or ""] = self._checked((key,), known[key], value)
            elif key not in verbs and not any(key in options_of(find(each)) for each in verbs):
                raise self._unknown((key,), [*known, *verbs])
        for key, value in own.items():
            if key not in known:
                raise self._unknown((verb, key), known)
            found[known[key].name or ""] = self._checked((verb, key), known[key], value)
        return found

    def place(self, *keys: str) -> str:
        """Where a key is written: ``trainmark.toml, line 3``."""
        from trainmark.workload.catalog import line_of

        return f"{self.file}, line {line_of(self.text, (*self.path, *keys))}"

    def place_of(self, verb: str, option: click.Option) -> str:
        """Where the value of an option of ``verb`` is written."""
        key = key_of(option)
        return self.place(verb, key) if key in self.table.get(verb, {}) else self.place(key)

    def _checked(self, path: tuple[str, ...], option: click.Option, value: Any) -> Any:
        if option.is_flag:
            if not isinstance(value, bool):
                raise self._error(path, "true or false", value)
            return value
        given = value if isinstance(value, list) and option.multiple else [value]
        if any(isinstance(each, bool) or not isinstance(each, (str, int, float)) for each in given):
            expected = "a string or a number"
            if option.multiple:
                expected += ", or a list of them"
            raise self._error(path, expected, value)
        written = [str(each) for each in given] if option.multiple else str(value)
        try:
            option.type_cast_value(click.Context(click.Command("config")), written)
        except click.BadParameter as error:
            expected = f"what --{key_of(option)} takes: {error.message}"
            raise self._error(path, expected, value) from error
        return written

    def _unknown(self, path: tuple[str, ...], known: Iterable[str]) -> UsageError:
        near = nearest(path[-1], known)
        fix = "`trainmark run --help` lists options."
        if near:
            fix = f"Did you mean {' or '.join(near)}?"
        return UsageError(
            f"{self.place(*path)}: unknown key {path[-1]!r}",
            expected="an option or a verb",
            fix=fix,
        )

    def _error(self, path: tuple[str, ...], expected: str, value: Any) -> UsageError:
        return UsageError(
            f"{self.place(*path)}: {path[-1]}", expected=expected, found=repr(value)[:100]
        )


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options that a file or the environment may set, by key."""
    return {key_of(each): each for each in command.params if isinstance(each, click.Option)}


def key_of(option: click.Option) -> str:
    """The first of its long names without dashes, such as ``data-dir``."""
    long = [flag for flag in option.opts if flag.startswith("--")]
    return (long or option.opts)[0].lstrip("-")


def variable_of(option: click.Option) -> str:
    """The environment variable of an option, such as ``TRAINMARK_DATA_DIR``."""
    return f"TRAINMARK_{key_of(option).replace('-', '_').upper()}"


def read(folder: Path) -> Configuration:
    """The nearest configuration of ``folder`` and those above it.

    Raises:
        UsageError: a file can't be read.
    """
    for place in (folder, *folder.parents):
        for name, path in ((NAME, ()), (SHARED, ("tool", "trainmark"))):
            file = place / name
            found = _read(file, path) if regular.is_file(file) else None
            if found is not None:
                return found
    return Configuration()


def _read(file: Path, path: tuple[str, ...]) -> Configuration | None:
    """None if the file has no such table."""
    try:
        text = regular.read(file, MOST_BYTES).decode()
        if path and path[-1] not in text:
            return None
        table: Any = toml_text.parse(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} can't be read", expected="TOML 1.0", found=str(error)) from error
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    if table is None:
        return None
    found = Configuration(file, text, path, table if isinstance(table, dict) else {})
    if not isinstance(table, dict):
        raise found._error(path, "a table", table)
    return found
