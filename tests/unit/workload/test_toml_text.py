"""TOML from strangers: what is larger than any workload is refused before it costs anything."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
import tomllib

from trainmark.cli.configuration import search
from trainmark.errors import SpecError, UsageError
from trainmark.workload import catalog, toml_text
from trainmark.workload.decode import DEEPEST
from trainmark.workload.toml_text import MOST_PARTS, MOST_TABLES, TooLarge

PARTS = ["a" * 2, '"b.c"', "'d'"]


def key_of(parts: int, join: str = ".") -> str:
    return join.join(PARTS[number % len(PARTS)] for number in range(parts))


@pytest.mark.parametrize("text", ["{} = 1", "[{}]", "[[{}]]", "x = {{ {} = 1 }}", "x = 1\n{} = 2"])
@pytest.mark.parametrize("join", [".", " . ", "\t.\t"])
def test_a_key_of_20000_parts_is_refused_with_its_line(text: str, join: str) -> None:
    document = text.replace("{}", key_of(20_000, join)).replace("{{", "{").replace("}}", "}")
    line = document.count("\n") + 1
    with pytest.raises(TooLarge, match=f"20,000 in line {line}"):
        toml_text.parse(document)


def test_a_long_key_takes_no_quadratic_memory() -> None:
    """``tomllib`` keeps every prefix of a key: 64 MB for this one, and gigabytes for a larger."""
    document = f"{key_of(4_000)} = 1"
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            toml_text.parse(document)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        "[[model]]\nkind = 'relu'\n" * 20_000,
        f"model = [{', '.join(['{kind = 1}'] * 20_000)}]",
        f"[[model]]\nkind = 'residual'\nbody = [{', '.join(['{kind = 1}'] * 20_000)}]",
    ],
)
def test_20000_layers_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match=rf"mine.toml is too large: expected .*{MOST_TABLES:,}"):
        catalog.parse(text, "mine.toml")


@pytest.mark.parametrize("depth", [*range(DEEPEST - 10, DEEPEST + 250, 10), 20_000])
@pytest.mark.parametrize(
    ("start", "end"),
    [("[", "]"), ("{a = ", "}"), ("[{kind = 'repeat', times = 1, layers = ", "}]")],
)
def test_deep_values_are_refused_or_a_misfit(start: str, end: str, depth: int) -> None:
    text = f"model = {start * depth}[{{kind = 'relu'}}]{end * depth}"
    with pytest.raises(SpecError):
        catalog.parse(text, "mine.toml")


def test_keys_as_long_as_allowed_are_read() -> None:
    text = f"{key_of(MOST_PARTS)} = 1"
    assert toml_text.parse(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        f'a = "{"x." * 40}"',
        f"a = '{'x.' * 40}'",
        f'a = """\n{"x." * 40}\n"""',
        f"a = '''\n{'x.' * 40}\n'''",
        f"# {'x.' * 40}\na = 1",
        'a = "\\"" # "\nb = 1.5',
        'a = """"x""""\nb = 1979-05-27T07:32:00.999Z',
        '"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r" = 1',
    ],
)
def test_dots_elsewhere_are_no_parts_of_a_key(text: str) -> None:
    assert toml_text.parse(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "piece", ['"""', "'''", '"\\"', '"a', "'", "#", '"""\\', "a = '''x\n", ".", '"x"."y".\n', "a ."]
)
def test_what_is_not_toml_is_an_error(piece: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        toml_text.parse(f"x{piece * 50_000}")


def test_every_listed_workload_is_read_as_before() -> None:
    for path in Path(catalog.__file__).parent.glob("*.toml"):
        text = path.read_text("utf-8")
        assert toml_text.parse(text) == tomllib.loads(text)


@pytest.mark.parametrize("text", [f"{key_of(20_000)} = 1", "[[a]]\n" * 20_000])
def test_a_configuration_is_limited_alike(tmp_path: Path, text: str) -> None:
    (tmp_path / search.NAME).write_text(text)
    with pytest.raises(UsageError, match=r"can't be read.*20,000"):
        search.find(tmp_path)
