"""Writes FOLDER/README.md: a section for each item, between markers; the rest of the page stays as
it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gpu import store
from gpu.items import ITEMS
from gpu.measurement import Item
from gpu.store import Result

NOT_MEASURED = "*not measured*"
TITLE = """# Measurements on GPUs

`python bench/gpu ITEM FOLDER` writes each section from the results in its folder. A section without
a table says *not measured*.
"""


def write(folder: Path) -> str:
    """Write the sections of all items into the page of a folder, and return the page."""
    path = folder / "README.md"
    text = path.read_text() if path.exists() else TITLE
    for item in ITEMS:
        text = _with_section(text, item.name, section(item, store.read(folder, item.name)))
    if not path.exists() or path.read_text() != text:
        store.replace(path, text)
    return text


def section(item: Item, results: dict[str, Result]) -> str:
    """Write the section of an item: conditions, tables, and what is missing."""
    parts = [f"## {item.number}. {item.question}", f"`python bench/gpu {item.name}` {item.how}"]
    tables = item.tables(results)
    if tables:
        parts += [_conditions(results), tables]
        missing = _missing(item, results)
        parts += [f"Missing: {missing}."] if missing else []
    else:
        problems = "; ".join(_problems(results))
        parts += [NOT_MEASURED, *([f"Tried: {problems}."] if problems else [])]
    return "\n\n".join(parts)


def _with_section(text: str, name: str, content: str) -> str:
    begin = f"<!-- {name}: written by bench/gpu -->"
    end = f"<!-- end of {name} -->"
    whole = f"{begin}\n{content}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if pattern.search(text):
        return pattern.sub(lambda _: whole, text)
    return f"{text.rstrip()}\n\n{whole}\n"


def _conditions(results: dict[str, Result]) -> str:
    """Write where and when the results were measured, one line for each set of conditions."""
    lines = dict.fromkeys(_condition(result.context) for result in results.values() if result.rows)
    return "\n".join(f"- {line}" for line in lines)


def _condition(context: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in context["versions"].items())
    driver = f", driver {context['driver']}, CUDA {context['cuda']}" if context["driver"] else ""
    text = (
        f"{context['device']}: {context['device_name'] or 'unknown'}{driver}; {context['cores']} "
        "cores of "
        f"{context['cpu']}; Python {context['python']}, {versions}; {context['date']}, commit "
        f"{context['commit']}"
    )
    if context["quick"]:
        text += ". **A rehearsal with tiny sizes: the figures mean nothing**"
    return text


def _missing(item: Item, results: dict[str, Result]) -> str:
    absent = [each.name for each in item.measurements() if each.name not in results]
    not_begun = [f"not begun: {', '.join(absent)}"] if absent else []
    return "; ".join([*_problems(results), *not_begun])


def _problems(results: dict[str, Result]) -> list[str]:
    troubled = [result for result in results.values() if result.problems]
    return [f"{result.measurement} ({_on_one_line(result.problems)})" for result in troubled]


def _on_one_line(problems: list[str]) -> str:
    return "; ".join(" ".join(problem.split()) for problem in problems)
