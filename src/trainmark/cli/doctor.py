"""``trainmark doctor``: check this machine, and print a fix for each problem."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.main import FAILED, OK
from trainmark.cli.options import data_dir_option
from trainmark.cli.output import json_option, print_json
from trainmark.data.cache import cache_dir, environment_dir
from trainmark.report.terminal import console

if TYPE_CHECKING:
    from trainmark.study.doctor.check import Check

SCHEMA = 1
_STYLES = {"PASS": "green", "WARN": "yellow", "FAIL": "bold red", "SKIP": "dim"}

EPILOG = """\b
Examples:
  trainmark doctor
  trainmark doctor --quick --json

\b
PASS: OK.  WARN: slow, or doubtful numbers.  FAIL: unusable, or wrong results.  SKIP: not checked here.
Exit codes: 0 no FAIL; 1 at least one; 2 usage.
"""


@click.command("doctor", epilog=EPILOG)
@click.option("--quick", is_flag=True, help="Skip the frameworks, which take a few seconds each to import.")
@click.option("--all", "show_all", is_flag=True, help="Also show skipped checks.")
@data_dir_option
@json_option
def command(quick: bool, show_all: bool, data_dir: Path | None, as_json: bool) -> int:
    """Check this machine, and print a fix for each problem.

    Each framework is checked in a separate process, in parallel, since importing one may crash or hang.
    """
    from trainmark.data.locate import locate
    from trainmark.study import doctor
    from trainmark.study.options import working_folder

    with console(to_stderr=True).status("Checking this machine" + ("" if quick else " and its frameworks")):
        facts = doctor.gather(quick=quick)
        checks = list(doctor.diagnose(facts))
        checks += doctor.look_at_data(
            lambda name: locate(name, named=data_dir, environment=environment_dir(), cache=cache_dir(), download=False),
            (cache_dir(), working_folder()),
        )
    if as_json:
        print_json({"schema": SCHEMA, "checks": [asdict(check) for check in checks]})
    else:
        _show(checks, show_all=show_all)
    return FAILED if any(check.status == "FAIL" for check in checks) else OK


def _show(checks: list[Check], *, show_all: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    screen = console()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        if check.status == "SKIP" and not check.fix and not show_all:
            continue
        words = Text(check.found)
        if check.fix:
            words.append(f"\n→ {check.fix}", style="bold")
        table.add_row(Text(check.status, style=_STYLES[check.status]), check.id, words)
    screen.print(table)
    counts = {status: sum(check.status == status for check in checks) for status in _STYLES}
    summary = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    hint = "" if show_all or not counts["SKIP"] else " (--all shows the skipped checks)"
    screen.print(f"\n{summary}{hint}")
