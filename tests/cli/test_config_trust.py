"""A configuration file may be anyone's: whose counts, and what it may set."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from trainmark.cli.configuration import trusted_folders
from trainmark.cli.configuration.named_options import TrustedOption, key_of, options_of
from trainmark.cli.main import VERBS, run
from trainmark.cli.main import command as group
from trainmark.scratch import shared_top

STRANGER = 65534
READ_ONLY = {"data-dir", "weights-from", "explanation"}
"""Options with a path that is only read."""
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, which has no configuration file, nor do those above it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.delenv("TRAINMARK_TRUST_CONFIG", raising=False)
    return folder


@pytest.fixture
def open_project(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder that other users can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(dir=shared_top()) as folder:
        Path(folder).chmod(0o755)
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            yield Path(folder)


def values(printed: Printed, verb: str = "run") -> dict[str, object]:
    """The options of a verb, without messages."""
    assert run(["config", "--json", verb]) == 0
    return {row["option"]: row["value"] for row in json.loads(printed.readouterr().out)}


def repeats(printed: Printed) -> object:
    return values(printed)["repeats"]


def messages(printed: Printed, *words: str) -> list[str]:
    """What a dry run prints on stderr about files."""
    assert run(["measure", "--dry-run", *words, "--", "true"]) == 0
    err = printed.readouterr().err.splitlines()
    return [line for line in err if line.startswith("trainmark: ")]


def a_file(folder: Path, text: str = "repeats = 4\n", name: str = "trainmark.toml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


@needs_root
def test_a_file_of_another_user_is_ignored(project: Path, capsys: Printed) -> None:
    file = a_file(project)
    os.chown(file, STRANGER, STRANGER)
    (message,) = messages(capsys)
    name = pwd.getpwuid(STRANGER).pw_name
    assert message.startswith(f"trainmark: ignored {file}: it belongs to {name}, not to you. ")
    assert repeats(capsys) is None


@needs_root
def test_then_the_user_s_own_file_above_it_holds(project: Path, capsys: Printed) -> None:
    a_file(project.parent, "repeats = 6\n")
    os.chown(a_file(project), STRANGER, STRANGER)
    assert repeats(capsys) == 6


@needs_root
def test_a_link_of_another_user_is_ignored(project: Path, capsys: Printed) -> None:
    link = project / "trainmark.toml"
    link.symlink_to(a_file(project, name="mine.toml"))
    assert repeats(capsys) == 4
    os.lchown(link, STRANGER, STRANGER)
    assert repeats(capsys) is None


@needs_root
def test_a_file_that_only_its_owner_can_read(open_project: Path) -> None:
    a_file(open_project, "this is not TOML").chmod(0o600)
    printed = as_user(STRANGER, STRANGER, "config", "--json", "run")
    assert printed.returncode == 0, printed.stderr
    assert "it belongs to root, not to you" in printed.stderr


@needs_root
@pytest.mark.parametrize("text", ["[tool.trainmark\n", "[project]\nname = 'trainmark-user'\n"])
def test_a_stranger_s_file_is_never_an_error(text: str, project: Path, capsys: Printed) -> None:
    file = a_file(project, text, "pyproject.toml")
    os.chown(file, STRANGER, STRANGER)
    assert [str(file) in line for line in messages(capsys)] == [True] * text.count("tool")


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o622])
def test_a_file_that_others_can_write_is_ignored(mode: int, project: Path, capsys: Printed) -> None:
    file = a_file(project)
    file.chmod(mode)
    (message,) = messages(capsys)
    assert f"ignored {file}: other users can write it (mode {mode:o})" in message
    assert "trainmark config --trust" in message
    assert repeats(capsys) is None


def test_in_a_folder_that_others_can_write(project: Path, capsys: Printed) -> None:
    a_file(project)
    project.chmod(0o777)
    assert "other users can replace it (mode 777 of its folder)" in messages(capsys)[0]
    project.chmod(0o1777)  # as /tmp
    assert repeats(capsys) == 4


def as_user(user: int, group_id: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process of another user."""
    interpreter = [sys.executable, "-c", AS_USER, str(group_id), str(user)]
    return subprocess.run([*interpreter, *words], capture_output=True, text=True)


AS_USER = """
import grp, json, os, pwd, sys
from trainmark.cli.main import run

run(["list", "backends", "--help"])
run(["config"])  # what is imported later may be in a folder that only root can read
group, user = map(int, sys.argv[1:3])
os.setgroups([])
os.setgid(group)
os.setuid(user)
print("---", flush=True)
sys.exit(run(sys.argv[3:]))
"""


def with_own_group() -> pwd.struct_passwd:
    """A user, not root, with a group of the same name, which no one else is in."""
    for user in pwd.getpwall():
        try:
            own = grp.getgrnam(user.pw_name)
        except KeyError:
            continue
        if user.pw_uid and own.gr_gid == user.pw_gid and not own.gr_mem:
            return user
    pytest.skip("this system has no such user")


@needs_root
def test_the_user_s_own_group_may_write(open_project: Path) -> None:
    """So files are created on many systems (umask 002)."""
    user = with_own_group()
    file = a_file(open_project)
    file.chmod(0o664)
    for group_id, counts in ((user.pw_gid, True), (0, False)):
        os.chown(file, user.pw_uid, group_id)
        printed = as_user(user.pw_uid, user.pw_gid, "config", "--json")
        assert printed.returncode == 0, printed.stderr
        assert bool(json.loads(printed.stdout.partition("---")[2])) == counts
        assert ("other users can write it" in printed.stderr) != counts


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_the_search_ends_at_the_root_of_the_repository(
    kind: str, project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(project.parent)
    inner = project / "src" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert repeats(capsys) == 4
    if kind == "folder":
        (project / ".git").mkdir()
    else:
        (project / ".git").write_text("gitdir: elsewhere\n")  # as in a submodule
    assert repeats(capsys) is None
    a_file(project, "repeats = 6\n")
    assert repeats(capsys) == 6


def test_the_search_ends_at_the_home_folder(
    project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(project.parent)
    monkeypatch.setenv("HOME", str(project))
    assert repeats(capsys) is None
    a_file(project, "repeats = 6\n")
    assert repeats(capsys) == 6


HARMFUL = """
repeats = 2
out = "elsewhere"
[measure]
vary-env = ["PATH=/evil"]
export-json = "precious.json"
"""


def test_what_could_do_harm_needs_trust(project: Path, capsys: Printed) -> None:
    file = a_file(project, HARMFUL)
    ignored, applied = messages(capsys)
    assert f"{file}: out, measure.vary-env, measure.export-json ignored" in ignored
    assert ignored.endswith("trainmark config --trust")
    assert applied == f"trainmark: options from {file}: repeats"
    found = values(capsys, "measure")
    assert (found["out"], found["vary-env"], found["export-json"]) == (
        "trainmark-results",
        [],
        None,
    )


def test_nothing_is_overwritten_without_trust(project: Path, capfd: Printed) -> None:
    precious = project / "precious.json"
    precious.write_text("mine")
    a_file(project, 'export-json = "precious.json"\n')
    assert run(["measure", "--repeats", "1", "--", "true"]) == 0
    assert precious.read_text() == "mine"
    assert run(["config", "--trust"]) == 0
    assert run(["measure", "--repeats", "1", "--", "true"]) == 0
    assert precious.read_text().startswith("{")


def test_a_trusted_folder_sets_them(project: Path, capsys: Printed) -> None:
    file = a_file(project, HARMFUL)
    assert run(["config", "--trust"]) == 0
    shown = capsys.readouterr()
    assert f"trusted {file}" in shown.err and "PATH=/evil" in shown.out
    assert messages(capsys) == [
        f"trainmark: options from {file}: vary-env, repeats, out, export-json"
    ]


def test_a_link_to_a_trusted_folder_is_the_folder(
    project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(project, HARMFUL)
    assert run(["config", "--trust"]) == 0
    capsys.readouterr()
    link = project.parent / "link"
    link.symlink_to(project)
    monkeypatch.chdir(link)
    assert len(messages(capsys)) == 1
    assert run(["config", "--untrust", str(link)]) == 0
    assert ": out, measure.vary-env, measure.export-json ignored" in messages(capsys)[-2]
    assert run(["config", "--trust"]) == 0
    capsys.readouterr()
    other = project.parent / "other"
    other.mkdir()
    a_file(other, HARMFUL)
    monkeypatch.chdir(other)
    assert ": out, measure.vary-env, measure.export-json ignored" in messages(capsys)[0]


def test_a_value_that_changed_since_is_not_trusted(project: Path, capsys: Printed) -> None:
    a_file(project, HARMFUL)
    assert run(["config", "--trust"]) == 0
    capsys.readouterr()
    a_file(project, HARMFUL.replace("repeats = 2", "repeats = 3\nseed = 7"))
    assert "ignored" not in messages(capsys)[0], "options that do no harm may change"
    a_file(project, HARMFUL.replace("/evil", "/worse"))
    ignored, applied = messages(capsys)
    assert "measure.vary-env ignored" in ignored and "these values are new" in ignored
    assert applied.endswith("repeats, out, export-json")


def test_trust_is_listed_and_withdrawn(
    project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(project, 'out = "elsewhere"\n')
    assert run(["config", "--trust"]) == 0
    capsys.readouterr()
    inner = project / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert run(["config", "--trusted", "--json"]) == 0
    row = {"folder": str(project), "option": "out", "value": "elsewhere"}
    assert json.loads(capsys.readouterr().out) == [row]
    assert run(["config", "--untrust"]) == 0
    assert f"{project} is no longer trusted" in capsys.readouterr().err
    assert run(["config", "--trusted"]) == 0
    assert "No folder is trusted." in capsys.readouterr().out
    assert ": out ignored" in messages(capsys)[0]
    assert run(["config", "--untrust"]) == 2


def test_a_folder_that_is_gone_can_be_withdrawn(project: Path, capsys: Printed) -> None:
    gone = project.parent / "gone"
    trusted_folders.trust(gone, {})
    assert run(["config", "--untrust", str(gone)]) == 0
    assert not trusted_folders.find_all()
    assert run(["config", "--untrust", str(gone)]) == 2
    assert f"{gone} is not trusted" in capsys.readouterr().err


def test_trust_makes_a_file_count_that_others_can_write(project: Path, capsys: Printed) -> None:
    a_file(project).chmod(0o666)
    assert run(["config", "--trust"]) == 0
    capsys.readouterr()
    assert repeats(capsys) == 4
    a_file(project, 'repeats = 5\nout = "elsewhere"\n')  # by another user
    assert ": out ignored" in messages(capsys)[0]


def test_where_there_is_no_file_nothing_is_trusted(capsys: Printed) -> None:
    assert run(["config", "--trust"]) == 2
    assert "there is nothing to trust here" in capsys.readouterr().err


def test_the_environment_trusts_every_file(
    project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(project, HARMFUL).chmod(0o666)
    for value in ("1", "true"):
        monkeypatch.setenv("TRAINMARK_TRUST_CONFIG", value)
        assert "vary-env" in messages(capsys)[0]
    for value in ("0", "", "no"):
        monkeypatch.setenv("TRAINMARK_TRUST_CONFIG", value)
        assert "ignored" in messages(capsys)[0]
    monkeypatch.setenv("TRAINMARK_TRUST_CONFIG", "/some/folder")
    assert run(["measure", "--dry-run", "--", "true"]) == 2
    assert "TRAINMARK_TRUST_CONFIG can't be read: expected 1 or 0" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[config]\ntrust = true\n", "trust = true\n", "untrust = ''\n"])
def test_a_file_does_not_trust_itself(text: str, project: Path, capsys: Printed) -> None:
    a_file(project, text)
    assert run(["config"]) == 2
    assert "unknown key" in capsys.readouterr().err
    assert not trusted_folders.find_all()


def test_nor_does_a_variable_that_an_option_would_have(
    project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(project, HARMFUL)
    monkeypatch.setenv("TRAINMARK_TRUST", "1")
    assert run(["config"]) == 0
    assert not trusted_folders.find_all()


def test_each_option_with_a_path_or_a_program_needs_trust() -> None:
    harmless = set()
    for verb in VERBS:
        for option in options_of(group.verb(verb)).values():  # type: ignore[attr-defined]
            takes = option.metavar or ""
            names_place = isinstance(option.type, click.Path) or takes in ("WHERE", "RAY")
            names_place |= any(word in takes for word in ("PATH", "FILE", "DIR", "HOST"))
            if names_place and not isinstance(option, TrustedOption):
                harmless.add(key_of(option))
    assert harmless == READ_ONLY


def test_what_fills_in_a_command_needs_trust() -> None:
    known = options_of(group.verb("measure"))  # type: ignore[attr-defined]
    for key in ("device", "vary", "vary-env"):
        assert isinstance(known[key], TrustedOption)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"folder": 3, "settings": {}}', "[" * 100_000])
def test_a_broken_list_of_trusted_folders_is_named(
    text: str, project: Path, capsys: Printed
) -> None:
    a_file(project)
    trusted_folders.trust(project, {})
    (file,) = (project.parent / "home").rglob("*.json")
    file.write_text(text)
    assert run(["measure", "--dry-run", "--", "true"]) == 2
    err = capsys.readouterr().err
    assert f"{file} can't be read" in err and "Remove that file" in err


def test_a_list_that_cannot_be_written_is_an_error(project: Path, capsys: Printed) -> None:
    a_file(project)
    (project.parent / "home").write_text("a file, not a folder")
    assert run(["config", "--trust"]) == 2
    assert "can't write" in capsys.readouterr().err


def test_the_file_that_applies_is_printed_once_and_on_stderr(
    project: Path, capsys: Printed
) -> None:
    file = a_file(project, "[tool.trainmark]\nrepeats = 4\nfail-below = 0.9\n", "pyproject.toml")
    assert messages(capsys) == [f"trainmark: options from {file}: repeats"]
    assert messages(capsys, "--repeats", "5") == []
    assert run(["measure", "--dry-run", "--json", "--", "true"]) == 0
    assert capsys.readouterr().out == ""


def test_quiet_prints_no_file(
    project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = a_file(project)
    assert messages(capsys, "--quiet") == messages(capsys, "-q") == []
    assert run(["measure", "--dry-run", "--", "true", "-q"]) == 0
    assert f"options from {file}" in capsys.readouterr().err, "it is the command's option"
    a_file(project, "repeats = 4\nquiet = true\n")
    assert messages(capsys) == []
    a_file(project)
    monkeypatch.setenv("TRAINMARK_QUIET", "1")
    assert messages(capsys) == []


def test_a_name_of_a_folder_steers_no_terminal(
    project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = project / "\x1b[2Jname"
    hostile.mkdir()
    monkeypatch.chdir(hostile)
    a_file(hostile, HARMFUL)
    for words in (["config", "--trust"], ["config", "--trusted"], ["config", "run"]):
        assert run(words) == 0
        printed = capsys.readouterr()
        assert "\x1b[2J" not in printed.out + printed.err
