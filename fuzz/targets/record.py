"""Records, and everything made from them without training: tables, comparisons, exports, charts,
the page."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import random
import tempfile
import zlib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

from fuzz.screen import drawn, harmless
from fuzz.structure import rewritten, swapped
from trainmark.analysis.agreement import agree, trainings
from trainmark.analysis.attribution import from_record
from trainmark.analysis.comparison import compare
from trainmark.analysis.outside import observe
from trainmark.analysis.scale_results import results as results_of_layouts
from trainmark.analysis.sweep import sweeps
from trainmark.analysis.two_records import set_against
from trainmark.analysis.yardstick import device_references
from trainmark.errors import TrainmarkError
from trainmark.execute.parent.request import RunRequest
from trainmark.record import codec
from trainmark.record.facts import RunKey
from trainmark.record.record import Record
from trainmark.report.comparison_table import comparison_tables
from trainmark.report.export.scalars import facts, points, results, start_of
from trainmark.report.length import asks_for_steps, length
from trainmark.report.machines_table import machines_table
from trainmark.report.outside_table import outside_table
from trainmark.report.page import page
from trainmark.report.record_table import record_tables
from trainmark.report.runs_table import runs_table
from trainmark.report.sweep_table import sweep_table
from trainmark.report.table import Table
from trainmark.report.two_records_table import two_records_table
from trainmark.study.rerun import request_of
from trainmark.workload import catalog

ONE_DRAWN_IN = 4
ONE_PAGE_IN = 16
"""Drawing a screen or a page takes far longer than computing its content."""
_names = cache(catalog.names)
_find = cache(catalog.find)
CORPUS = Path(__file__).parents[1] / "corpus" / "record"
_CACHE = Path(tempfile.mkdtemp(prefix="trainmark-fuzz-"))
(_CACHE / f"vega-{importlib.metadata.version('vl-convert-python')}.js").write_text("drawing();")


def one(data: bytes) -> None:
    """Use one input: one record per paragraph, as JSON texts between empty lines."""
    records = []
    for text in data.split(b"\n\n")[:4]:
        try:
            record = codec.decode(text, "r.json")
        except TrainmarkError as error:
            assert harmless(str(error).replace("\t", " "))
            continue
        again = codec.decode(codec.encode(record), "r.json")
        assert codec.content(again) == codec.content(record)
        records.append(record)
    if records:
        chance = zlib.crc32(data)
        with mock.patch.multiple(catalog, names=_names, find=_find):  # it does not change
            use(records, drawing=chance % ONE_DRAWN_IN == 0, whole_page=chance % ONE_PAGE_IN == 1)


def use(records: list[Record], *, drawing: bool, whole_page: bool) -> None:
    """Do everything that commands do with records in a folder."""
    tables: list[Table] = []
    for record in records:
        tables += record_tables(record)
        RunKey.of(record)
        with contextlib.suppress(TrainmarkError):
            request_of(record, RunRequest())
        length(len(record.epochs), 1, by_steps=asks_for_steps(record))
        from_record(record)
        json.dumps([facts(record), results(record), start_of(record), len(list(points(record)))])
        if record.process is not None:
            tables.append(outside_table(record.id, observe(record)))
        tables.append(two_records_table(record.id, records[0].id, set_against(record, records[0])))
    try:
        comparison = compare(records)
        by_machine = compare(records, "machine")
        published = agree(trainings(records))
    except TrainmarkError:
        return
    device_references(comparison)
    tables += [*comparison_tables(comparison), *comparison_tables(by_machine)]
    tables += [runs_table(records), machines_table(records)]
    tables += map(sweep_table, sweeps(records))
    spread_out = [record for record in records if record.group.spread is not None]
    json.dumps(codec.to_plain(results_of_layouts(spread_out)), allow_nan=False)
    if drawing:
        drawn(tables)
    json.dumps(codec.to_plain([comparison, by_machine]), allow_nan=False)
    if whole_page:
        _Reader().read(page(records, comparison, published, cache=_CACHE))


class _Reader(HTMLParser):
    """Checks that a record added nothing but text to the page."""

    def read(self, html: str) -> None:
        body = html[html.index("<body>") : html.index('<script type="application/json"')]
        assert harmless(body.replace("\t", " "))
        self.feed(body)
        specs = html[html.index('id="specs">') + 11 :]
        json.loads(specs[: specs.index("</script>")])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "iframe", "object", "embed", "base", "meta", "link", "form"), (
            tag
        )
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name in ("href", "src"):
                assert (value or "").startswith(
                    ("#", "data:text/csv;base64,", "data:image/png;base64,")
                ), value


@cache
def _donors() -> tuple[bytes, ...]:
    """Return valid records of all kinds, whose parts are swapped into others."""
    return tuple(path.read_bytes() for path in sorted(CORPUS.glob("seed-*")))


def _swapped(text: bytes, donor: bytes, chance: random.Random) -> bytes | None:
    """Replace subtrees of one record by subtrees of another; None if one is not JSON."""
    try:
        other = swapped(json.loads(text), json.loads(donor), chance)
        return json.dumps(other, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return None


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """Nearly always mutate one of the records as JSON, or swap parts of it with another record.

    Plain mutations rarely get past the parser.
    """
    import atheris

    chance = random.Random(seed)
    texts = data.split(b"\n\n")
    which = chance.randrange(len(texts))
    kind = chance.random()
    other = None
    if kind < 0.45:
        other = rewritten(texts[which], chance)
    elif kind < 0.9:
        other = _swapped(texts[which], chance.choice([*texts, *_donors()]), chance)
    if other is None:
        return bytes(atheris.Mutate(data, most))
    if chance.random() < 0.15:
        texts.append(other)
    else:
        texts[which] = other
    together = b"\n\n".join(texts)
    return together if len(together) <= most else data
