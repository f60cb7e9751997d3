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
from trainmark.units import many

if TYPE_CHECKING:
    from trainmark.study.doctor.check import Check

SCHEMA = 1
_STATUSES = {"FAIL": "bold red", "WARN": "yellow", "PASS": "green", "SKIP": "dim"}
"""Display order and colour of each status."""
_PROBLEMS = ("FAIL", "WARN")

EPILOG = """\b
Examples:
  trainmark doctor
  trainmark doctor --verbose
  trainmark doctor --quick --json

\b
PASS: OK.  WARN: slow, or doubtful numbers.  FAIL: unusable, or wrong results.  SKIP: not checked here.
Exit codes: 0 no FAIL; 1 at least one; 2 usage.
"""


@click.command("doctor", epilog=EPILOG)
@click.option("--quick", is_flag=True, help="Skip the frameworks, which take a few seconds each to import.")
@click.option("-v", "--verbose", "--all", is_flag=True, help="Show every check, not only the problems.")
@data_dir_option
@json_option
def command(quick: bool, verbose: bool, data_dir: Path | None, as_json: bool) -> int:
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
        _show(checks, verbose=verbose)
    return FAILED if any(check.status == "FAIL" for check in checks) else OK


def _show(checks: list[Check], *, verbose: bool) -> None:
    """Print the verdict and the problems; with ``verbose``, the other checks below them."""
    from rich.table import Table
    from rich.text import Text

    screen = console()
    by_status = {status: [check for check in checks if check.status == status] for status in _STATUSES}
    verdict, style = _verdict(by_status)
    screen.print(Text(verdict, style=f"bold {style}"))
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    shown = [
        check for found in by_status.values() for check in found if check.status in _PROBLEMS or check.fix or verbose
    ]
    for check in shown:
        words = Text(check.found)
        if check.fix:
            words.append(f"\n→ {check.fix}", style="bold")
        table.add_row(Text(check.status, style=_STATUSES[check.status]), check.id, words)
    if shown:
        screen.print()
        screen.print(table)
    if len(shown) < len(checks):
        screen.print(f"\n--verbose shows {many(len(checks) - len(shown), 'other check')}.", style="dim")


def _verdict(by_status: dict[str, list[Check]]) -> tuple[str, str]:
    """Return one sentence and its colour."""
    failed, doubtful, passed = (len(by_status[status]) for status in ("FAIL", "WARN", "PASS"))
    if failed:
        also = f" and {many(doubtful, 'warning')}" if doubtful else ""
        return f"This machine has {many(failed, 'problem')}{also}.", "red"
    if doubtful:
        return f"This machine works, with {many(doubtful, 'warning')}; {many(passed, 'check')} passed.", "yellow"
    return f"This machine is fine: {many(passed, 'check')} passed.", "green"
