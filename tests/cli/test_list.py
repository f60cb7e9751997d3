"""``trainmark list``: known facts come at once, and other interpreters have rows next to those of
this one."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trainmark.backends.base import Device
from trainmark.cli.main import run
from trainmark.execute.parent import probe as probes
from trainmark.execute.parent.probe import THIS, Interpreter, Seen, backends_of, probe

NUMPY = probe(THIS, "numpy")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Only NumPy works anywhere, and only in the interpreter ``old``."""
    met: list[tuple[str, str]] = []

    def answer(interpreter: Interpreter, backend: str) -> Seen:
        met.append((interpreter.label, backend))
        if backend == "numpy" and interpreter.label != "broken":
            return NUMPY
        return Seen(backend, interpreter, problem=f"No module named {backend!r}")

    monkeypatch.setattr(probes, "probe", answer)
    monkeypatch.setattr(
        probes, "backends_of", lambda _: {"numpy": "pip install numpy", "toy": "pip install toy"}
    )
    return met


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert run(["list", *arguments, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_what_is_known_is_printed_before_any_backend_is_probed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []

    def answer(interpreter: Interpreter, backend: str) -> Seen:
        printed.append(capsys.readouterr().out)
        return Seen(backend, interpreter, problem="gone")

    monkeypatch.setattr(probes, "probe", answer)
    assert run(["list"]) == 0
    assert "mnist-mlp512" in printed[0] and "synthetic-digits" in printed[0]
    assert "pip install" in printed[1], "backends come before the first device is detected"
    assert "gone" in capsys.readouterr().out


def test_backends_of_another_interpreter(
    asked: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = listed(capsys, "backends", "--python", "old=/opt/old/bin/python")
    there = [row for row in rows if "@" in row["name"]]
    assert [(row["name"], row["installed"]) for row in there] == [
        ("numpy@old", True),
        ("toy@old", False),
    ]
    assert there[1]["problem"] == "No module named 'toy'", (
        "a plug-in that doesn't work is shown, with the reason"
    )
    assert [backend for label, backend in asked if label == "old"] == ["numpy", "toy"], (
        "those that it has"
    )


def test_a_plug_in_here_that_does_not_work(
    asked: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    (fake,) = (row for row in listed(capsys, "backends") if row["name"] == "fake")
    assert (fake["installed"], fake["problem"]) == (False, "No module named 'fake'")
    assert asked == [("default", "fake")], "built-in backends are not imported"


def test_devices_of_another_interpreter(
    asked: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = listed(capsys, "devices", "--python", "old=/opt/old/bin/python")
    assert [row["device"] for row in rows if row["backend"] == "numpy@old"] == ["cpu"]


def test_an_untested_kind_of_device_is_marked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert NUMPY.can is not None
    intel = Device("xpu:0", "Intel Arc", "accelerator", tested=False)
    can = dataclasses.replace(NUMPY.can, devices=(*NUMPY.can.devices, intel))
    for found, marked in ((NUMPY, False), (dataclasses.replace(NUMPY, can=can), True)):
        monkeypatch.setattr(probes, "probe", lambda *_, found=found: found)
        assert {row["tested_on_hardware"] for row in listed(capsys, "devices")} == (
            {True, False} if marked else {True}
        )
        assert run(["list", "devices"]) == 0
        assert ("tested" in capsys.readouterr().out) is marked


def test_where_nothing_works_each_says_why(
    asked: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = listed(capsys, "devices", "--python", "broken=/opt/broken/bin/python")
    why = {row["backend"]: row["name"] for row in rows if row["backend"].endswith("@broken")}
    assert why["numpy@broken"] == "No module named 'numpy'"
    assert len(why) > 1


def test_no_interpreter_is_asked_for_what_none_has(
    asked: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(capsys, "datasets", "--python", "old=/opt/old/bin/python")
    assert asked == []


def test_an_interpreter_names_its_backends_or_is_taken_to_have_the_built_in_ones(
    tmp_path: Path,
) -> None:
    assert backends_of(THIS)["torch"] == "pip install torch"
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexit 1\n")
    silent.chmod(0o755)
    assert {"torch", "numpy"} <= backends_of(Interpreter("silent", silent)).keys()


def test_an_interpreter_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", "backends", "--python", f"gone={tmp_path / 'python'}"]) == 2
    assert str(tmp_path / "python") in capsys.readouterr().err
    assert run(["list", "backends", "--python", sys.executable]) == 2
