"""What a script logs to a library is kept, if the user names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.observed import observed
from trainmark.inject.logged import Logged
from trainmark.inject.observer import Observer

SCRIPT = Path(__file__).parent / "scripts" / "seen" / "logs.py"


def logged(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "of the observer" / "pipe").read_text().splitlines()
    return [each for each in map(json.loads, lines) if each["event"] == "logged"]


@pytest.mark.parametrize("library", ["tensorboardX", "mlflow"])
def test_numbers_and_tensors_are_kept_with_their_step(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip(library)
    monkeypatch.setenv("TRAINMARK_METRIC", "val_loss")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    run = observed(SCRIPT, library, folder=tmp_path)
    assert run.code == 0, run.err
    assert not [each for each in run.injected if each.startswith("not ")]
    (message,) = logged(tmp_path)
    assert (message["tag"], message["count"], message["others"]) == ("Val_loss", 6, ["rate"])
    assert message["values"] == [[number, number] for number in range(1, 7)]
    assert message["extremes"] == [[1, 1], [6, 6]]


def test_nothing_is_kept_unless_it_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    run = observed(SCRIPT, "tensorboardX", folder=tmp_path)
    assert run.code == 0, run.err
    assert not logged(tmp_path)


@pytest.fixture
def keeping(tmp_path: Path) -> Logged:
    return Logged("loss", Observer(str(tmp_path)))


def test_what_is_no_number_is_left_out(keeping: Logged) -> None:
    for value in ("n/a", None, [1, 2], object(), 0.5):
        keeping.keep("wandb", {"loss": value, 7: 1.0})
    (message,) = keeping.messages(True)
    assert message["values"] == [[0, 0.5]]


def test_a_figure_that_one_library_passes_on_counts_once(keeping: Logged) -> None:
    for library in ("lightning", "tensorboard"):
        keeping.keep(library, {"loss": 0.5})
    (message,) = keeping.messages(True)
    assert message["count"] == 1


def test_of_many_values_the_last_and_the_lowest_are_known(keeping: Logged) -> None:
    for number in range(5_050):
        keeping.keep("wandb", {"loss": float(abs(number - 3_333))})
    messages = keeping.messages(True)
    values = [value for each in messages for _, value in each["values"]]
    assert len(values) == 2_000 + 31 + 1
    assert (values[-1], messages[-1]["count"]) == (5_049 - 3_333, 5_050)
    assert messages[-1]["extremes"][0] == [0, 0.0]


def test_nothing_is_read_while_the_steps_are_timed(keeping: Logged) -> None:
    keeping.keep("wandb", {"loss": 0.5})
    assert keeping.messages(False) == []
    assert len(keeping.messages(True)) == 1
