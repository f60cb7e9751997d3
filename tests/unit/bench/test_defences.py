"""A defence that is taken away from a copy of the package must turn its test red."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap

import pytest

from bench.defences import DEFENCES, ROOT, Cut, CutDoesNotApply, Defence, without

STORE = textwrap.dedent(
    """
    class Store:
        def write(self, content):
            try:
                self._put(
                    content,  # whole
                    sync=True,
                )
            except OSError as error:
                raise Lost('full') from error

        def sweep(self):
            self._put(content, sync=True)
    """
)


def cut(code: str, instead: str, function: str = "Store.write") -> Cut:
    return Cut("trainmark.store", function, code, instead)


def test_a_cut_replaces_code_whatever_its_formatting() -> None:
    changed = cut("self._put(content, sync=True)", "None").apply(STORE)
    assert changed.count("self._put(content, sync=True)") == 1, "the other function keeps it"


def test_a_cut_can_replace_a_statement() -> None:
    changed = cut('raise Lost("full") from error', "return").apply(STORE)
    assert "raise" not in changed
    assert "return" in changed


def test_a_cut_can_replace_the_error_that_is_caught() -> None:
    assert "except KeyError as error" in cut("OSError", "KeyError").apply(STORE)


@pytest.mark.parametrize(
    ("function", "code"),
    [("Store.put", "OSError"), ("write", "OSError"), ("Store.write", "ValueError")],
    ids=["a missing function", "a method without its class", "missing code"],
)
def test_a_cut_of_what_is_gone_is_an_error(function: str, code: str) -> None:
    with pytest.raises(CutDoesNotApply, match=code if code == "ValueError" else function):
        cut(code, "KeyError", function).apply(STORE)


@pytest.fixture
def truncated() -> Defence:
    """A defence whose test is fast."""
    return next(each for each in DEFENCES if each.fault == "truncated gzip")


def command(*names: str) -> subprocess.CompletedProcess[str]:
    """Run the command for the faults of these names."""
    return subprocess.run(
        [sys.executable, "-m", "bench.defences", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_is_red_without_its_defence(truncated: Defence) -> None:
    done = command(truncated.fault)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 tests turned red" in done.stdout


def test_an_unknown_fault_is_an_error() -> None:
    done = command("trunkated gzip")
    assert done.returncode == 2
    assert "no fault is called trunkated gzip" in done.stderr


def test_a_test_is_green_without_what_it_does_not_need(truncated: Defence) -> None:
    unrelated = dataclasses.replace(truncated.cut, code="zlib.error", instead="ValueError")
    red, last_line = without(dataclasses.replace(truncated, cut=unrelated))
    assert not red
    assert "passed" in last_line


def test_a_test_that_is_gone_is_not_red(truncated: Defence) -> None:
    red, _ = without(dataclasses.replace(truncated, test=f"{truncated.test}_gone"))
    assert not red


def test_a_module_that_is_gone_is_not_red(truncated: Defence) -> None:
    gone = dataclasses.replace(truncated.cut, module="trainmark.gone")
    red, why = without(dataclasses.replace(truncated, cut=gone))
    assert not red
    assert "trainmark.gone no longer exists" in why
