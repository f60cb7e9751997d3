"""The pages of docs/platforms: their quotes of doctor are right, and their commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import tomllib

import trainmark
from trainmark.cli.main import command
from trainmark.study.doctor import diagnose

from .test_doctor import BROKEN
from .test_ids import general

ROOT = Path(trainmark.__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "platforms").glob("*.md"))
ROW = re.compile(r"^\| `([\w.:-]+)` \| (FAIL|WARN): (.*?) \| `(.*)` \|$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
BY_OTHERS = {"containers.md"}
"""Pages that are linked, and come with another verb."""

pytestmark = pytest.mark.skipif(not PAGES, reason="an installed package has no docs")


@pytest.fixture(scope="module")
def said() -> set[tuple[str, str, str, str]]:
    """Return all findings of doctor on broken machines."""
    checks = (check for facts, *_ in BROKEN.values() for check in diagnose(facts))
    return {(check.id, check.status, check.found, check.fix) for check in checks}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_quoted_of_doctor_is_what_it_says(
    page: Path, said: set[tuple[str, str, str, str]]
) -> None:
    text = page.read_text()
    rows = ROW.findall(text)
    assert len(rows) >= 2 or page.stem == "README"
    # none is passed over
    assert len(rows) == len(re.findall(r"^\|.*\| (?:FAIL|WARN)\b", text, re.MULTILINE))
    assert [row for row in rows if row not in said] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_check_that_is_named_exists(page: Path) -> None:
    document = (ROOT / "docs" / "doctor.md").read_text()
    known = set(re.findall(r"^\| `([^`]+)` \|", document, re.MULTILINE))
    named = set(
        re.findall(r"`((?:host|gpu|torch|frameworks|data)\.[a-z][\w.:-]*)`", page.read_text())
    )
    assert {each for each in named if general(each) not in known} <= {"gpu.processes.N"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_option_that_is_typed_exists(page: Path) -> None:
    assert isinstance(command, click.Group)
    text = page.read_text()
    code = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    code += re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    )
    typed = [
        line
        for each in code
        for line in re.findall(r"(?<![/\w-])trainmark ([a-z]+\b[^#|;\n]*)", each)
    ]
    for line in typed:
        words = shlex.split(line.split("   ")[0].split(", or ")[0])
        verb = command.get_command(click.Context(command), words[0])
        assert verb is not None, line
        options = {
            option
            for parameter in verb.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert {word for word in words if word.startswith("--")} <= options | {"--"}, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_within_the_docs_resolve(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        path = (page.parent / target).resolve()
        assert (ROOT / "docs") in path.parents, (
            f"{target} leaves the docs, which a site of them does not hold"
        )
        assert path.exists() or path.name in BY_OTHERS, target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_without_a_real_run_says_so_at_the_top(page: Path) -> None:
    first = page.read_text().split("\n\n")[1]
    assert page.stem == "README" or re.search(
        r"(?i)\bnot run\b|not (?:yet )?been run|was not solved|was run with NGC", first
    )


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "platforms" / "README.md").read_text()
    assert {page.name for page in PAGES} - {"README.md"} <= set(LINK.findall(index))


def test_the_conda_environment_agrees_with_the_project() -> None:
    yaml = pytest.importorskip("yaml")
    text = (ROOT / "environment.yml").read_text()
    environment = yaml.safe_load(text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(environment) == {"name", "channels", "dependencies"}
    *conda, pip = environment["dependencies"]
    (python,) = (each for each in conda if each.startswith("python="))
    least = tuple(map(int, re.findall(r"\d+", project["requires-python"])))
    assert tuple(map(int, python.removeprefix("python=").split("."))) >= least
    assert set(conda) == {python, "pip"}, "conda brings nothing that constraints.txt pins"
    assert pip["pip"][0] == "-c constraints.txt"
    assert (ROOT / "constraints.txt").is_file()
    (package,) = pip["pip"][1:]
    extras = re.fullmatch(r"-e \.\[([a-z,]+)\]", package)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    assert f"```yaml\n{text.strip()}\n```" in (ROOT / "docs" / "platforms" / "conda.md").read_text()
