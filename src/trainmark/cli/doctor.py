"""``trainmark doctor``: check this machine, and print a fix for each problem."""

from __future__ import annotations

import platform
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.main import FAILED, OK
from trainmark.cli.options import data_dir_option
from trainmark.cli.output import json_option, show
from trainmark.data.cache import cache_dir, environment_dir
from trainmark.report.console import console
from trainmark.report.table import Cell, Field, Table, Tone, table_of, text_of
from trainmark.units import many

if TYPE_CHECKING:
    from trainmark.study.doctor.check import Check

SCHEMA = 1
"""Version of the output of ``--json``."""
_TONES: dict[str, Tone] = {"FAIL": "bad", "WARN": "doubtful", "PASS": "good", "SKIP": "dim"}
"""The statuses in display order."""

EPILOG = """\b
Examples:
  trainmark doctor
  trainmark doctor --verbose
  trainmark doctor --quick --json

\b
PASS: OK.  WARN: slow, or doubtful numbers.  FAIL: unusable, or wrong results.
SKIP: not checked here.
Exit codes: 0 no FAIL; 1 at least one; 2 usage.
"""


@click.command("doctor", epilog=EPILOG)
@click.option(
    "--quick", is_flag=True, help="Skip the frameworks, which take a few seconds each to import."
)
@click.option(
    "-v", "--verbose", "--all", is_flag=True, help="Show every check, not only the problems."
)
@data_dir_option
@json_option
def command(quick: bool, verbose: bool, data_dir: Path | None, as_json: bool) -> int:
    """Check this machine, and print a fix for each problem.

    Each framework is checked in a separate process, in parallel, since importing one may crash or
    hang.
    """
    from trainmark.data.locate import locate
    from trainmark.study import doctor
    from trainmark.study.options import working_folder

    find = partial(
        locate, named=data_dir, environment=environment_dir(), cache=cache_dir(), download=False
    )
    what = "this machine" if quick else "this machine and its frameworks"
    with console(to_stderr=True).status(f"Checking {what}"):
        facts = doctor.gather(quick=quick)
        checks = list(doctor.diagnose(facts))
        checks += doctor.look_at_data(find, (cache_dir(), working_folder()))
    show({"schema": SCHEMA, "checks": checks}, [_table(checks, verbose=verbose)], as_json=as_json)
    return FAILED if any(check.status == "FAIL" for check in checks) else OK


def _table(checks: list[Check], *, verbose: bool) -> Table:
    """Return the verdict and the problems and, if ``verbose``, the other checks below them."""
    ordered = sorted(checks, key=lambda check: list(_TONES).index(check.status))
    shown = [check for check in ordered if verbose or check.fix or check.status in ("FAIL", "WARN")]
    others = len(checks) - len(shown)
    return table_of(
        shown,
        (
            Field("status", lambda check: Cell(check.status, tone=_TONES[check.status])),
            Field("check", text_of("id")),
            Field("found", lambda check: Cell(check.found, f"→ {check.fix}" if check.fix else "")),
        ),
        title=platform.node(),
        notes=(f"--verbose shows {many(others, 'other check')}.",) if others else (),
        answer=_verdict(checks),
    )


def _verdict(checks: list[Check]) -> Cell:
    counts = Counter(check.status for check in checks)
    failed = counts["FAIL"]
    doubtful = counts["WARN"]
    passed = f"{many(counts['PASS'], 'check')} passed"
    if failed:
        also = f" and {many(doubtful, 'warning')}" if doubtful else ""
        return Cell(f"This machine has {many(failed, 'problem')}{also}.", tone="bad")
    if doubtful:
        warnings = many(doubtful, "warning")
        return Cell(f"This machine works, with {warnings}; {passed}.", tone="doubtful")
    return Cell(f"This machine is fine: {passed}.", tone="good")
