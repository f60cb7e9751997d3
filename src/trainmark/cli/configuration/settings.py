"""What a configuration file sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from trainmark.cli.configuration.named_options import TrustedOption, key_of, options_of
from trainmark.errors import UsageError, nearest

FindVerb = Callable[[str], click.Command]
"""Returns the command of a verb."""


@dataclass(frozen=True)
class IgnoredFile:
    """A file that does not count, and why."""

    file: Path
    reason: str


@dataclass(frozen=True)
class Configuration:
    """The options in a file; empty if there is none.

    Args:
        path: keys of its table, such as ``("tool", "trainmark")``.
        approved: values of options that need trust, by key in the file; None approves all.
        ignored: nearer files that don't count.
    """

    file: Path | None = None
    text: str = ""
    path: tuple[str, ...] = ()
    table: Mapping[str, Any] = field(default_factory=dict)
    approved: Mapping[str, Any] | None = field(default_factory=dict)
    ignored: tuple[IgnoredFile, ...] = ()

    def defaults(self, verb: str, verbs: Iterable[str], find: FindVerb) -> dict[str, Any]:
        """The values for the options of ``verb``, by parameter, without those that need trust.

        Args:
            verbs: names of all verbs.

        Raises:
            UsageError: an unknown key, or a value that its option does not take; says file and
                line.
        """
        known = options_of(find(verb))
        for key in self.table.keys() - known.keys() - {*verbs}:
            if not any(key in options_of(find(each)) for each in verbs):
                raise self._unknown((key,), [*known, *verbs])
        for key in self._own(verb):
            if key not in known:
                raise self._unknown((verb, key), known)
        return {
            option.name or "": self._checked(keys, option, value)
            for keys, option, value in self._settings(verb, find)
            if self._counts(keys, option, value)
        }

    def withheld(self, verb: str, find: FindVerb) -> list[str]:
        """Return the keys that ``verb`` ignores, since they need trust."""
        return [
            ".".join(keys)
            for keys, option, value in self._settings(verb, find)
            if not self._counts(keys, option, value)
        ]

    def needing_trust(self, verbs: Iterable[str], find: FindVerb) -> dict[str, Any]:
        """Return the values that need trust for any verb, by key in the file."""
        return {
            ".".join(keys): value
            for verb in verbs
            for keys, option, value in self._settings(verb, find)
            if isinstance(option, TrustedOption)
        }

    def _settings(
        self, verb: str, find: FindVerb
    ) -> Iterator[tuple[tuple[str, ...], click.Option, Any]]:
        """Yield what the file sets for ``verb``: the keys, the option and the value."""
        known = options_of(find(verb))
        own = self._own(verb)
        for key, value in self.table.items():
            if key in known and key not in own:
                yield (key,), known[key], value
        for key, value in own.items():
            if key in known:
                yield (verb, key), known[key], value

    def _own(self, verb: str) -> Mapping[str, Any]:
        """Return the table that holds for ``verb`` alone."""
        own = self.table.get(verb, {})
        if not isinstance(own, dict):
            raise self.error((verb,), "a table", own)
        return own

    def _counts(self, keys: tuple[str, ...], option: click.Option, value: Any) -> bool:
        if self.approved is None or not isinstance(option, TrustedOption):
            return True
        key = ".".join(keys)
        return key in self.approved and self.approved[key] == value

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
                raise self.error(path, "true or false", value)
            return value
        given = value if isinstance(value, list) and option.multiple else [value]
        if any(isinstance(each, bool) or not isinstance(each, (str, int, float)) for each in given):
            expected = "a string or a number"
            if option.multiple:
                expected += ", or a list of them"
            raise self.error(path, expected, value)
        written = [str(each) for each in given] if option.multiple else str(value)
        try:
            option.type_cast_value(click.Context(click.Command("config")), written)
        except click.BadParameter as error:
            expected = f"what --{key_of(option)} takes: {error.message}"
            raise self.error(path, expected, value) from error
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

    def error(self, path: tuple[str, ...], expected: str, value: Any) -> UsageError:
        """Return the error for a value that is not what was ``expected``."""
        return UsageError(
            f"{self.place(*path)}: {path[-1]}", expected=expected, found=repr(value)[:100]
        )
