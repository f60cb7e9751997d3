"""One self-contained page about records: works offline, makes no network requests, and prints."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.metadata
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmark import regular, units
from trainmark.analysis.agreement import PublishedResult
from trainmark.analysis.machines import MachineOf, tell_apart
from trainmark.analysis.results import Comparison
from trainmark.analysis.sweep import sweeps
from trainmark.record.record import Record
from trainmark.report.chart_data import chart_data
from trainmark.report.charts import of_all, of_side, of_work
from trainmark.report.charts.breakdown import breakdown
from trainmark.report.charts.chart import Chart, MeasuredWork
from trainmark.report.charts.theme import DARK, LIGHT, ON_PAGE, Theme
from trainmark.report.comparison_table import comparison_tables
from trainmark.report.csv_text import to_csv
from trainmark.report.explained import Explained
from trainmark.report.machines_table import machines_table
from trainmark.report.printable import printable
from trainmark.report.published_table import published_tables
from trainmark.report.runs_table import runs_table
from trainmark.report.sweep_table import sentence, sweep_table
from trainmark.report.table import Table
from trainmark.report.verdict import verdict

_FOLDER = Path(__file__).parent
_MOST_LOADS = 6
"""Most sides per workload whose utilisation is drawn, to keep the page readable."""


def page(
    records: Sequence[Record],
    comparison: Comparison,
    published: Sequence[PublishedResult] = (),
    explained: Sequence[Explained] = (),
    *,
    title: str = "trainmark report",
    made_with: str = "trainmark",
    cache: Path | None = None,
) -> str:
    """Return the whole page, as HTML.

    Args:
        records: the records, at least one.
        comparison: comparison of the records, without trials of sweeps.
        published: published figures of their workloads, next to the measured ones.
        explained: explanations of where the time of a step goes.
        made_with: shown in the last line.
        cache: folder for files that are slow to build.
    """
    import jinja2
    import markupsafe

    every = chart_data(comparison)
    tables = comparison_tables(comparison)
    machine_of = tell_apart(records)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    environment.filters["csv"] = _as_link
    charts = _Charts()
    body = environment.get_template("body.html").render(
        title=title,
        about=_about(records, machine_of),
        sections=[_section(work, table) for work, table in zip(every, tables, strict=True)],
        legend=_legend(tables),
        sweeps=[
            {"sweep": each, "answer": sentence(each), "table": sweep_table(each)}
            for each in sweeps(records)
        ],
        breakdown=breakdown(explained),
        rooflines=of_all(every),
        machines=machines_table(records, machine_of),
        published=published_tables(published),
        runs=runs_table(records, machine_of),
        charts=charts,
        made_with=made_with,
    )
    # The body is escaped already; the rest is trusted, or JSON that can't end a script.
    scripts = {"vega": _vega(cache), "script": (_FOLDER / "page.js").read_text(encoding="utf-8")}
    allowed = " ".join(f"'{_hash(text)}'" for text in scripts.values())
    ours = {
        "body": body,
        "style": _style(),
        "specs": charts.as_json(),
        "allowed": allowed,
        **scripts,
    }
    whole: str = environment.get_template("page.html").render(
        title=title, **{name: markupsafe.Markup(text) for name, text in ours.items()}
    )
    return whole


class _Charts:
    """The charts of a page, by id."""

    def __init__(self) -> None:
        self._specs: dict[str, dict[str, Any]] = {}

    def add(self, chart: Chart) -> str:
        """Add the chart, and return its id."""
        name = f"chart-{len(self._specs) + 1}"
        self._specs[name] = {**chart.spec(), "config": ON_PAGE.config()}
        return name

    def as_json(self) -> str:
        """Return the charts as JSON, safe inside a script element."""
        return json.dumps(self._specs, separators=(",", ":"), allow_nan=False).replace(
            "<", "\\u003c"
        )


def _legend(tables: Sequence[Table]) -> list[str]:
    """Return the meaning of the columns of all tables, each once."""
    lines = itertools.chain.from_iterable(table.legend() for table in tables)
    return list(dict.fromkeys(lines))


def _section(work: MeasuredWork, table: Table) -> dict[str, Any]:
    """Return what the page shows about a workload: answer, table and charts."""
    seen = [side for side in work.sides if any(record.samples for record in side.records)]
    loads = [(side.label, of_side(side)) for side in seen[:_MOST_LOADS]]
    return {
        "work": work,
        "verdict": verdict(work),
        "table": table,
        "charts": of_work(work),
        "loads": [(label, drawn) for label, drawn in loads if drawn],
        "loads_left_out": max(len(seen) - _MOST_LOADS, 0),
    }


def _about(records: Sequence[Record], machine_of: MachineOf) -> str:
    machines = list(dict.fromkeys(machine_of(record).title for record in records))
    first = min(record.created for record in records)
    last = max(record.created for record in records)
    when = units.moment(first)
    if last != first:
        when += f" to {units.moment(last)}"
    where = machines[0] if len(machines) == 1 else f"{len(machines)} machines"
    return f"{units.many(len(records), 'run')} on {where}, {when}"


def _as_link(table: Table) -> str:
    """Return the rows as CSV, in a ``data:`` URL."""
    return "data:text/csv;base64," + base64.b64encode(to_csv([table]).encode()).decode()


def _printable(value: Any) -> Any:
    """Replace control characters, which HTML must not contain, unless ``value`` is HTML already."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _hash(script: str) -> str:
    """Return the hash that lets the browser run this script, and no other one on the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _style() -> str:
    text = (_FOLDER / "page.css").read_text(encoding="utf-8")
    return text.replace("/*light*/", _colours(LIGHT)).replace("/*dark*/", _colours(DARK))


def _colours(theme: Theme) -> str:
    named = {"paper": theme.background, "ink": theme.ink, "quiet": theme.quiet, "line": theme.line}
    named |= {f"side-{number}": colour for number, colour in enumerate(theme.sides, 1)}
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


def _vega(cache: Path | None) -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, so that the page needs no network.

    Building it takes a second or two, so it is cached.
    """
    import vl_convert

    version = importlib.metadata.version("vl-convert-python")
    kept = None if cache is None else cache / f"vega-{version}.js"
    if kept is not None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return kept.read_text(encoding="utf-8")
    # The function's stub lacks its default.
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    bundle = bundle.replace("</script", "<\\/script")
    if kept is not None:
        # If the cache is not writable, the script is built again next time.
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            regular.write_atomically(kept, bundle.encode())
    return bundle
