"""A record may decide names that are looked up here when its run is repeated, and no path or
program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.records import a_command, a_record
from trainmark.errors import ForeignRecord, TrainmarkError, UnknownName
from trainmark.execute.parent import request as run_requests
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.probe import Interpreter, Seen
from trainmark.execute.parent.request import RunRequest
from trainmark.record import codec
from trainmark.record.record import Record
from trainmark.study import rerun

EVIL = "/tmp/evil/python"


def asked_of(record: Record, *interpreters: Interpreter) -> list[tuple[Path, str]]:
    """Record which interpreters would be started, and for which backends."""
    started: list[tuple[Path, str]] = []

    def ask(interpreter: Interpreter, backend: str) -> Seen:
        started.append((interpreter.path, backend))
        return Seen(backend, interpreter, problem="asked")

    request = rerun.request_of(record, RunRequest(interpreters=interpreters, settings=Settings()))
    with pytest.raises(TrainmarkError, match="does not work in"):
        run_requests.select(request, ask=ask)
    return started


def changed(**parts: dict[str, Any]) -> Record:
    record = a_record()
    new = {name: structs.replace(getattr(record, name), **values) for name, values in parts.items()}
    return structs.replace(record, **new)


def test_a_record_never_chooses_the_program_that_is_started() -> None:
    record = changed(python={"executable": EVIL})
    assert asked_of(record) == [(Path(sys.executable), "numpy")]


def test_the_label_of_a_record_is_one_that_was_given_here() -> None:
    record = changed(python={"executable": EVIL, "label": "old"})
    with pytest.raises(UnknownName, match="--python old="):
        run_requests.select(rerun.request_of(record, RunRequest()))
    mine = Interpreter("old", Path("/opt/mine/python"))
    assert asked_of(record, mine) == [(mine.path, "numpy")]


@pytest.mark.parametrize(
    "name", ["os:system", "../../evil", "trainmark.backends.numpy.backend:X", "evil", "\x1b[2J"]
)
def test_the_backend_of_a_record_is_one_that_is_installed(name: str) -> None:
    with pytest.raises(UnknownName, match="unknown backend"):
        run_requests.select(rerun.request_of(changed(backend={"name": name}), RunRequest()))


@pytest.mark.parametrize("name", ["../../etc", "/etc/passwd", "http://evil.invalid/x", "evil"])
def test_the_dataset_of_a_record_is_one_of_the_catalogue(name: str) -> None:
    with pytest.raises(UnknownName, match="unknown dataset"):
        run_requests.select(rerun.request_of(changed(dataset={"name": name}), RunRequest()))


def test_a_command_in_a_record_is_never_run_again() -> None:
    with pytest.raises(ForeignRecord, match="is a record of a command"):
        rerun.request_of(a_command(), RunRequest())


@pytest.mark.parametrize(
    "changes",
    [
        {"threads": 10**9},
        {"threads": 0},
        {"threads": -1},
        {"seed": -1},
        {"memory_fraction": 7.0},
        {"memory_fraction": 0},
    ],
)
def test_figures_that_no_command_line_takes_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ForeignRecord, match="can't be read"):
        rerun.request_of(structs.replace(a_record(), **changes), RunRequest())


def test_a_network_that_no_machine_holds_is_refused() -> None:
    record = a_record()
    spec = {
        **record.workload.spec,
        "model": [{"kind": "flatten"}, {"kind": "dense", "units": 10**12}],
    }
    with pytest.raises(ForeignRecord, match="can't be read"):
        rerun.request_of(
            structs.replace(record, workload=structs.replace(record.workload, spec=spec)),
            RunRequest(),
        )


def test_initial_weights_are_next_to_the_record_whatever_its_id(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = folder / "r.json"
    (tmp_path / "x.safetensors").write_bytes(b"secret")
    path.write_bytes(codec.encode(structs.replace(a_record(), id="../../x")))
    with pytest.raises(TrainmarkError, match="has no weights") as caught:
        run_requests.select(RunRequest(weights_from=path))
    assert caught.value.expected == str(folder / "r.safetensors")
