"""Workloads from strangers."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
import tomllib
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.structure import changed
from trainmark.errors import SpecError, UsageError
from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.model import lay_out
from trainmark.workload.schedule import Batches, Schedule, epoch_sizes
from trainmark.workload.spec import Workload

TOML = (Path(catalog.__file__).parent / "mnist-cnn.toml").read_text("utf-8")
DATA = catalog.find("mnist-cnn").to_data()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_a_changed_workload_is_one_or_a_misfit(seed: int) -> None:
    try:
        workload = Workload.from_data(changed(DATA, random.Random(seed)))
        model = lay_out(workload)
    except Misfit as misfit:
        assert len(str(misfit)) < 2_000
        return
    assert model.parameters <= 2 << 30


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(TOML) - 1), st.text(max_size=8))
def test_a_changed_file_is_a_workload_or_an_error_of_ours(at: int, text: str) -> None:
    try:
        catalog.parse(TOML[:at] + text + TOML[at + len(text) :], "mine.toml")
    except UsageError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('kind = "dense"', 'kind = "dense"\nunits = 1000000000000 #'),
        ("[28, 28, 1]", "[1000000, 1000000, 1]"),
        ("epochs = ", f"epochs = {10**15} #"),
        ("[28, 28, 1]", "[" * 50_000 + "]" * 50_000),
        ("[28, 28, 1]", "{a=" * 5_000 + "1" + "}" * 5_000),
        ("epochs = ", f"epochs = {'9' * 5_000} #"),
        ("[28, 28, 1]", "[0000-00-00]"),
    ],
)
def test_what_no_machine_would_hold_is_refused_at_once(old: str, new: str) -> None:
    assert old in TOML
    begin = time.monotonic()
    with pytest.raises(SpecError):
        catalog.parse(TOML.replace(old, new, 1), "mine.toml")
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        ({"kind": "dense", "units": 10**12}, "at most 1,073,741,824 weights"),
        ({"kind": "dense", "units": 10**400}, "at most 1,073,741,824 weights"),
        ({"kind": "conv2d", "filters": 10**12, "size": 3}, "at most 1,073,741,824 weights"),
        (
            {"kind": "conv2d", "filters": 1, "size": 10**12, "padding": "same"},
            "a window of at most",
        ),
        (
            {"kind": "max-pool", "size": 10**12, "stride": 1, "padding": "same"},
            "a window of at most",
        ),
        ({"kind": "max-pool", "size": 2, "stride": 10**12}, None),
    ],
)
def test_a_giant_layer_is_refused_before_memory_is_allocated(
    layer: dict[str, object], said: str | None
) -> None:
    flat = [{"kind": "flatten"}] if layer["kind"] == "dense" else []
    rest = [] if flat else [{"kind": "flatten"}]
    model = [*flat, layer, *rest, {"kind": "dense", "units": 10}]
    workload = Workload.from_data(
        {**DATA, "model": model, "loss": {"kind": "softmax-cross-entropy"}}
    )
    if said is None:
        lay_out(workload)
        return
    with pytest.raises(Misfit, match=said):
        lay_out(workload)


def test_an_endless_network_and_an_endless_epoch_are_refused() -> None:
    relu = [{"kind": "relu"}] * 20_000
    with pytest.raises(Misfit, match="at most 10,000 layers"):
        lay_out(Workload.from_data({**DATA, "model": [*relu, *DATA["model"]]}))
    with pytest.raises(SpecError, match="too many steps"):
        epoch_sizes(Schedule(1, dataset_repeats=10**6), Batches(1), 60_000)


@pytest.mark.timeout(120)
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with (tmp_path / "large.toml").open("wb") as file:
        file.truncate(20 << 30)
    for name in ("pipe", "zero", "large"):
        with pytest.raises(SpecError, match="can't be read"):
            catalog.find(str(tmp_path / f"{name}.toml"))


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a/b", "x\0y", "\x1b[31m", "x" * 100_000, "../catalog/mnist-cnn"]
)
def test_a_name_is_a_name_and_no_path(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        catalog.find(name)
    assert len(str(caught.value)) < 2_000


def test_a_long_name_takes_no_time_and_no_room() -> None:
    data = tomllib.loads(TOML) | {"model": [{"kind": "x" * 1_000_000}], "y" * 1_000_000: 1}
    data.pop("position", None)
    with pytest.raises(Misfit) as caught:
        Workload.from_data(data)
    assert len(str(caught.value)) < 2_000
