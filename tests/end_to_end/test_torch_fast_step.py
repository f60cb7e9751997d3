"""The step of PyTorch's ``fast`` with the choices of a user: compiled on the CPU, in fresh
processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from tests.slow import slow
from trainmark.record.caveats import Caveat
from trainmark.report.record_table import record_tables

pytest.importorskip("torch", reason="torch is not installed")

COMPILED = {"TRAINMARK_TORCH_FAST": "compiled"}
SMALL = "width=24,depth=1,batch=2,length=16"


def train(command: CommandLine, *arguments: str, extra: dict[str, str]) -> None:
    line = [
        *(
            "run",
            "mnist-mlp32",
            "--backend",
            "torch",
            "--style",
            "fast",
            "--device",
            "cpu",
            "--threads",
            "1",
        ),
        *(
            "--dataset",
            "synthetic-digits",
            "--steps",
            "3",
            "--budget",
            "0",
            "--out",
            str(command.out),
            *arguments,
        ),
    ]
    code, _, err = command.run_alone(*line, extra=extra, seconds=600)
    assert code == 0, err


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "is_there",
    # by day, a test of the backend has none
    [pytest.param(True, id="broken"), pytest.param(False, id="missing", marks=pytest.mark.slow)],
)
def test_a_compiler_that_fails_is_a_caveat_with_its_reason(
    command: CommandLine, tmp_path: Path, is_there: bool
) -> None:
    compiler = tmp_path / "broken-compiler"
    if is_there:
        compiler.write_text("#!/bin/sh\necho 'no headers' >&2\nexit 1\n")
        compiler.chmod(0o755)
    train(command, "--repeats", "1", extra={**COMPILED, "CXX": str(compiler)})
    (record,) = command.records()
    assert record.outcome.status == "ok"
    assert record.backend.settings["step"] == "eager"
    assert Caveat.STEP_NOT_COMPILED in record.caveats
    assert "not compiled" in repr(record_tables(record))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_processes_of_a_command_compile_once(command: CommandLine, tmp_path: Path) -> None:
    train(command, "--repeats", "2", extra=COMPILED)
    assert [record.backend.compile_cache for record in command.records()] == ["cold", "warm"]
    assert all((record.compile_seconds or 0) > 0 for record in command.records())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cache_that_the_user_names_stays(command: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    train(command, "--repeats", "1", extra={**COMPILED, "TORCHINDUCTOR_CACHE_DIR": str(folder)})
    train(command, "--repeats", "1", extra={**COMPILED, "TORCHINDUCTOR_CACHE_DIR": str(folder)})
    assert [record.backend.compile_cache for record in command.records()] == ["cold", "warm"]
    assert list(folder.iterdir())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("workload", [slow("gpt2-124m"), slow("shakespeare-gpt-10m")])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_compiled_step_of_a_gpt_computes_the_same(
    command: CommandLine, data_dir: Path, workload: str, precision: str
) -> None:
    line = [
        *(
            "parity",
            workload,
            "--backend",
            "torch",
            "--style",
            "fast",
            "--precision",
            precision,
            "--size",
            SMALL,
        ),
        *("--data-dir", str(data_dir), "--json"),
    ]
    code, out, err = command.run_alone(*line, extra=COMPILED, seconds=800)
    assert code == 0, err
    (side,) = json.loads(out)["sides"]
    assert side["passed"]
