"""Messages about the configuration file, on stderr."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.core import ParameterSource

from trainmark.cli.configuration.named_options import key_of, options_of
from trainmark.cli.configuration.settings import Configuration
from trainmark.cli.output import print_message

_HOW = "After reading that file, run: trainmark config --trust"


def print_ignored(configuration: Configuration, withheld: Sequence[str]) -> None:
    """Print which files are ignored, and which options of the one that applies.

    Args:
        withheld: keys of options that need trust.
    """
    for each in configuration.ignored:
        print_message(f"ignored {each.file}: {each.reason}. {_HOW}")
    if withheld:
        names = ", ".join(withheld)
        what = "options that choose programs, servers or files to write must be trusted"
        why = f"{what}, and these values are new" if configuration.approved else what
        print_message(f"{configuration.file}: {names} ignored, since {why}. {_HOW}")


def print_applied(configuration: Configuration, made: click.Context) -> None:
    """Print which file sets options of a command line, unless that is to be quiet."""
    applied = [
        key_of(option)
        for option in options_of(made.command).values()
        if made.get_parameter_source(option.name or "") is ParameterSource.DEFAULT_MAP
    ]
    if applied and not made.params.get("quiet"):
        print_message(f"options from {configuration.file}: {', '.join(applied)}")
