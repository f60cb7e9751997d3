"""Every example of every ``--help`` and of the documents is a command line that trainmark takes;
cheap ones are run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from trainmark.backends import registry
from trainmark.backends.base import STYLES
from trainmark.cli import main
from trainmark.data import catalog as datasets
from trainmark.errors import UnknownName
from trainmark.execute.parent.choose import require_known_styles
from trainmark.study.explain.own_script import require_changes
from trainmark.workload import catalog

ROOT = Path(__file__).parents[2]
ASKING = (
    "trainmark list",
    "trainmark list devices",
    "trainmark list backends --python old=/opt/old/bin/python",
)
CHEAP = {"list", "show", "schema", "compare", "export"}


def command_of(verb: str) -> click.Command:
    command = main.command.get_command(click.Context(main.command), verb)
    assert command is not None, f"{verb} is no verb"
    return command


def help_of(verb: str) -> str:
    return command_of(verb).get_help(click.Context(command_of(verb), info_name=verb))


def examples_in(text: str) -> list[str]:
    """Return the lines that begin with ``trainmark``, without the words behind two spaces."""
    found = re.findall(r"^(?: {2}| {4})?(trainmark [^\n]*)$", text, re.MULTILINE)
    return [re.split(r" {2,}|(?<=\w) \.\.\.$", line.strip())[0] for line in found]


def examples_of_help() -> Iterator[tuple[str, str]]:
    yield from (("trainmark", line) for line in examples_in(main.EPILOG))
    for verb in main.VERBS:
        yield from ((verb, line) for line in examples_in(help_of(verb).partition("Examples:")[2]))


def examples_of_documents() -> Iterator[tuple[str, str]]:
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        blocks = re.findall(r"^```(?:\w*)\n(.*?)^```", file.read_text(), re.MULTILINE | re.DOTALL)
        yield from ((file.name, line) for block in blocks for line in examples_in(block))


def words_of(line: str) -> list[str]:
    """Return the words for trainmark: no redirection, nothing behind a pipe or another command."""
    words = shlex.split(line, comments=True)[1:]
    ends = [index for index, word in enumerate(words) if word in (">", ">>", "|", "&&", ";")]
    return words[: min(ends, default=len(words))]


def parsed(line: str) -> click.Context:
    """Parse the words as click does, without running them."""
    verb, *words = words_of(line)
    return command_of(verb).make_context(verb, words)


@pytest.mark.parametrize("verb", main.VERBS)
def test_every_verb_has_an_example(verb: str) -> None:
    assert any(words_of(line)[0] == verb for where, line in examples_of_help() if where == verb)


def listed(given: str | Iterable[str] | None) -> list[str]:
    """Return the values of an option that takes one name, several names, or none."""
    return [given] if isinstance(given, str) else list(given or ())


def require_known_names(line: str) -> None:
    """Raise UnknownName if an example names something that trainmark doesn't have."""
    given = parsed(line).params
    workloads = [*listed(given.get("workloads")), *listed(given.get("workload"))]
    workloads += [each for each in listed(given.get("target")) if not each.endswith(".json")]
    for name in workloads:
        if not name.endswith(".toml"):  # else it is the reader's own
            catalog.find(name)
    for written in listed(given.get("backend")):
        name, _, label = written.partition("@")
        if not (label and name in registry.WELL_KNOWN_PLUGINS):
            registry.find(registry.SYNONYMS.get(name, name))
    for name in listed(given.get("dataset")):
        datasets.find(name)
    require_known_styles(listed(given.get("style")))
    require_changes(listed(given.get("only")))


@pytest.mark.parametrize(
    ("where", "line"), dict.fromkeys([*examples_of_help(), *examples_of_documents()])
)
def test_an_example_is_understood_and_names_what_exists(where: str, line: str) -> None:
    del where  # it is part of the test's id
    require_known_names(line)


@pytest.mark.parametrize(
    "line",
    [
        "trainmark run mnist-cmn",
        "trainmark parity mnist-cmn",
        "trainmark explain mnist-cmn",
        "trainmark run mnist-cnn --backend troch",
        "trainmark run mnist-cnn --backend torch,troch@old",
        "trainmark run mnist-cnn --style idiomatic,quick",
        "trainmark run mnist-cnn --dataset mnits",
        "trainmark explain --only fussed -- python train.py",
    ],
)
def test_a_misspelt_name_in_an_example_is_found(line: str) -> None:
    with pytest.raises(UnknownName):
        require_known_names(line)


@pytest.mark.parametrize("style", STYLES)
def test_an_example_may_use_every_style(style: str) -> None:
    require_known_names(f"trainmark run mnist-cnn --style {style}")


@pytest.mark.parametrize(
    "line", sorted({line for _, line in examples_of_help() if words_of(line)[0] in CHEAP})
)
def test_it_works(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--plot" in line or "mlflow" in line or line in ASKING:
        pytest.skip(
            "drawing and asking frameworks are slow, MLflow's server is not here; they "
            "have tests elsewhere"
        )
    results = ROOT / "docs" / "results" / "main-job"
    for folder in ("trainmark-results", "old", "new"):
        shutil.copytree(results, tmp_path / folder)
    for file in (tmp_path / "new").glob("*.json"):
        record = json.loads(file.read_text())
        file.write_text(json.dumps({**record, "python": {**record["python"], "label": "new"}}))
    shutil.copy(
        catalog.__file__.replace("__init__.py", "mnist-cnn.toml"), tmp_path / "my-network.toml"
    )
    shutil.copy(next(results.glob("*.json")), tmp_path / "trainmark-results" / "<id>.json")
    monkeypatch.chdir(tmp_path)
    if "tensorboard" in line:
        pytest.importorskip("tensorboardX")
    assert main.run(words_of(line)) == main.OK


def test_what_is_no_example_would_be_found() -> None:
    with pytest.raises(click.ClickException, match="--repeat"):
        parsed("trainmark run --repeat 3")
