"""What a script logs to a library is kept, if the user names it."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
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
    messages = logged(tmp_path)
    last = messages[-1]
    assert (last["tag"], last["count"], last["others"]) == ("Val_loss", 6, ["rate"])
    values = [value for each in messages for value in each["values"]]
    assert values == [[number, number] for number in range(1, 7)]
    assert last["extremes"] == [[1, 1], [6, 6]]


def test_nothing_is_kept_unless_it_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    run = observed(SCRIPT, "tensorboardX", folder=tmp_path)
    assert run.code == 0, run.err
    assert not logged(tmp_path)


@pytest.fixture
def keeping(tmp_path: Path) -> Logged:
    return Logged("loss", Observer(str(tmp_path)))


def test_what_is_no_number_is_left_out(keeping: Logged) -> None:
    for value in ("n/a", None, [1, 2], object(), Detached(), 0.5):
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


def test_numbers_are_sent_at_once_and_tensors_once_they_may_be_read(keeping: Logged) -> None:
    torch = pytest.importorskip("torch")
    keeping.keep("wandb", {"loss": 0.5})
    keeping.keep("wandb", {"loss": torch.tensor([0.25])})
    keeping.keep("wandb", {"loss": 0.125})
    (first,) = keeping.messages(False)
    assert first["values"] == [[0, 0.5]]
    assert keeping.messages(False) == []
    (second,) = keeping.messages(True)
    assert second["values"] == [[0, 0.25], [0, 0.125]]


def test_the_last_of_many_values_is_sent_in_its_order(keeping: Logged) -> None:
    torch = pytest.importorskip("torch")
    for number in range(2_050):
        keeping.keep("wandb", {"loss": float(number)})
    assert keeping.messages(False)[-1]["values"][-1] == [0, 2_049]
    keeping.keep("wandb", {"loss": torch.tensor(7.0)})
    assert keeping.messages(False) == []
    keeping.keep("wandb", {"loss": 8.0})
    assert keeping.messages(False) == []
    assert keeping.messages(True)[-1]["values"] == [[0, 7.0], [0, 8.0]]


def test_other_names_are_sent_next_to_a_figure_without_a_readable_value(keeping: Logged) -> None:
    keeping.keep("wandb", {"loss": "n/a", "rate": 0.5})
    (message,) = keeping.messages(True)
    assert (message["tag"], message["others"]) == ("", ["rate"])
    assert keeping.messages(True) == []


class Figure:
    """A large object that is no number."""


class Detached:
    """An object that is no tensor, although it has a method of one."""

    def detach(self) -> None:
        """Return nothing."""


class Meter:
    """An object with a current value."""

    value = 0.5

    def __float__(self) -> float:
        return self.value


def test_nothing_but_numbers_is_kept_alive(keeping: Logged) -> None:
    figure = Figure()
    array = np.zeros(1000)
    alive: list[weakref.ref[Any]] = [weakref.ref(figure), weakref.ref(array)]
    for value in (figure, array):
        keeping.keep("wandb", {"loss": value})
    del value, figure, array
    gc.collect()
    assert [each() for each in alive] == [None, None]
    assert keeping.messages(True) == []


def test_large_tensors_are_not_copied(keeping: Logged) -> None:
    torch = pytest.importorskip("torch")
    keeping.keep("wandb", {"loss": torch.zeros(1000)})
    assert not keeping._series


def test_a_meter_is_read_at_once(keeping: Logged) -> None:
    meter = Meter()
    keeping.keep("wandb", {"loss": meter})
    meter.value = 0.25
    keeping.keep("wandb", {"loss": np.array([0.125])})
    keeping.keep("wandb", {"loss": np.float32(2)})
    keeping.keep("wandb", {"loss": 10**400})
    (message,) = keeping.messages(True)
    assert message["values"] == [[0, 0.5], [0, 0.125], [0, 2]]
    assert message["count"] == 3


def test_an_array_of_jax_is_read_later(keeping: Logged) -> None:
    jax = pytest.importorskip("jax")
    keeping.keep("wandb", {"loss": jax.numpy.ones(5)})
    keeping.keep("wandb", {"loss": jax.numpy.ones(1)})
    assert keeping.messages(False) == []
    (message,) = keeping.messages(True)
    assert message["values"] == [[0, 1]]
