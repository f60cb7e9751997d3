"""What version 0.1 had and this one doesn't is answered with what to use instead."""

from __future__ import annotations

import pytest

from trainmark.cli.main import run


def test_container(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["container", "build", "--tag", "trainmark:cpu"]) == 2
    assert (
        "docker build -f docker/Dockerfile -t trainmark:cpu --build-arg TORCH_INDEX=URL ."
        in capsys.readouterr().err
    )


def test_completion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "bash"]) == 2
    assert "_TRAINMARK_COMPLETE=bash_source trainmark" in capsys.readouterr().err


def test_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--cloud"]) == 2
    assert (
        "--cloud was removed. Use --label, such as --label instance=g5.xlarge"
        in capsys.readouterr().err
    )
