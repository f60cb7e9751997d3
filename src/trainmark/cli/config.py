"""``trainmark config``: show which options apply, and where each comes from."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from trainmark.cli.configuration import trusted_folders
from trainmark.cli.configuration.messages import print_ignored
from trainmark.cli.configuration.named_options import TypedOption, key_of, options_of, variable_of
from trainmark.cli.configuration.trusting import show_folders, trust_here, withdraw
from trainmark.cli.output import json_option, show
from trainmark.errors import UsageError
from trainmark.masking import Secrets
from trainmark.record.masked import masked_plain
from trainmark.report.table import Cell, Field, table_of

if TYPE_CHECKING:
    from trainmark.cli.main import Verbs

EPILOG = """\b
Examples:
  trainmark config                      what the file and the environment set, for every verb
  trainmark config run                  all options of run
  trainmark config run --repeats 5      the same, with this option
  trainmark config --trust              trust the file that applies in this folder
  trainmark config --trusted            list the folders that you trust
  trainmark config --untrust            withdraw the trust in this folder

\b
Options come from the command line, else from TRAINMARK_OPTION (TRAINMARK_REPEATS=5), else from
trainmark.toml or [tool.trainmark] in pyproject.toml, in this folder or one above, up to the root
of the repository or your home folder:

\b
  repeats = 5                # for every verb that has --repeats
  [run]
  backend = ["torch", "jax"]

A file is ignored if it belongs to another user, or others can write it. Options that name
programs, servers or files to write, such as python, out and export-json, count only in a folder
that you trust, with the values that they had then. TRAINMARK_TRUST_CONFIG=1 trusts every file, for
CI.
"""


@click.command("config", epilog=EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("verb", required=False)
@click.argument("words", metavar="[OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--trust",
    cls=TypedOption,
    is_flag=True,
    help="Trust the file that applies here, and print what that allows.",
)
@click.option(
    "--untrust",
    cls=TypedOption,
    is_flag=False,
    flag_value="",
    metavar="[FOLDER]",
    help="Withdraw the trust in this folder, or in FOLDER.",
)
@click.option("--trusted", cls=TypedOption, is_flag=True, help="List the folders that you trust.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    verb: str | None,
    words: tuple[str, ...],
    trust: bool,
    untrust: str | None,
    trusted: bool,
    as_json: bool,
) -> None:
    """Show which options apply to VERB, and where each comes from.

    Without VERB, it shows only what a file or the environment sets.
    """
    group: Verbs = context.find_root().command  # type: ignore[assignment]  # the only group
    names = [name for name in group.list_commands(context) if name != "config"]
    if [trust, untrust is not None, trusted].count(True) > 1:
        raise UsageError("--trust, --untrust and --trusted exclude each other")
    if trust:
        show_folders([trust_here(group, names)], as_json=as_json)
    elif untrust is not None:
        withdraw(untrust)
    elif trusted:
        show_folders(trusted_folders.find_all(), as_json=as_json)
    else:
        _show_options(context, group, [verb] if verb else names, words, as_json=as_json)


def _show_options(
    context: click.Context,
    group: Verbs,
    names: list[str],
    words: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    rows = []
    for name in names:
        rows += _rows(group, context, name, list(words))
    if len(names) > 1:
        rows = [row for row in rows if row["source"] != "default"]
    file = group.configuration(context)
    withheld = itertools.chain.from_iterable(file.withheld(name, group.verb) for name in names)
    print_ignored(file, list(dict.fromkeys(withheld)))
    table = table_of(
        rows,
        (
            Field("verb", lambda row: Cell(row["verb"], tone="strong")),
            Field("option", lambda row: f"--{row['option']}"),
            Field("value", lambda row: _written(row["value"])),
            Field("from", lambda row: row["where"]),
        ),
        title="Options" if rows else "No file and no environment variable sets an option.",
    )
    show(rows, [table], as_json=as_json)


def _rows(
    group: Verbs, context: click.Context, verb: str, words: list[str]
) -> list[dict[str, Any]]:
    command = group.configured(context, verb)
    made = command.make_context(verb, words, parent=context.find_root(), resilient_parsing=True)
    return [_row(group, made, verb, option) for option in options_of(command).values()]


def _row(group: Verbs, made: click.Context, verb: str, option: click.Option) -> dict[str, Any]:
    name = option.name or ""
    match made.get_parameter_source(name):
        case ParameterSource.COMMANDLINE:
            source = where = "command line"
        case ParameterSource.ENVIRONMENT:
            source = "environment"
            where = variable_of(option)
        case ParameterSource.DEFAULT_MAP:
            source = "file"
            where = group.configuration(made).place_of(verb, option)
        case _:  # it is not set, or the words could not be parsed
            source = where = "default"
    value = made.params.get(name)
    if isinstance(value, Path):
        value = str(value)
    return {
        "verb": verb,
        "option": key_of(option),
        "value": value if name in ("vary", "vary_env") else masked_plain(value, Secrets()),
        "source": source,
        "where": where,
    }


def _written(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value))
    return str(value)
