"""Options as a file or the environment names them, and which of them they may set."""

from __future__ import annotations

import click


class TrustedOption(click.Option):
    """An option that names a program, a server, or a file to write.

    A file sets it only in a folder that the user trusts.
    """


class TypedOption(click.Option):
    """An option that changes the user's settings: neither a file nor the environment sets it."""


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options that a file or the environment may set, by key."""
    return {
        key_of(each): each
        for each in command.params
        if isinstance(each, click.Option) and not isinstance(each, TypedOption)
    }


def key_of(option: click.Option) -> str:
    """The first of its long names without dashes, such as ``data-dir``."""
    long = [flag for flag in option.opts if flag.startswith("--")]
    return (long or option.opts)[0].lstrip("-")


def variable_of(option: click.Option) -> str:
    """The environment variable of an option, such as ``TRAINMARK_DATA_DIR``."""
    return f"TRAINMARK_{key_of(option).replace('-', '_').upper()}"
