"""``measure --device`` finds a script's best number of threads on the CPU; another side acts as the
accelerator."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine
from trainmark.data.locate import Located
from trainmark.inject.best_threads import VARIABLES
from trainmark.measure.host import usable_core_numbers
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record

pytest.importorskip("torch")
SCRIPT = Path(__file__).parent / "own_scripts" / "on_device.py"
STEPS = 700
"""Steps of the script: a search and a few slices on a fast machine, too."""


@pytest.fixture(autouse=True, scope="module")
def two_cores() -> Iterator[None]:
    """There are several numbers of threads to choose from, and no variable fixes one."""
    if len(usable_core_numbers()) < 2:
        pytest.skip("needs two cores")
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        yield


def measured(
    command: CommandLine, *words: str, options: tuple[str, ...] = ()
) -> tuple[list[Record], str]:
    """Return the records of the script on the CPU and on the pretended accelerator, and what was
    printed."""
    devices = ("--device", "cpu,cuda:0", "--out", str(command.out))
    _, out, err = command.run(
        "measure", *devices, *options, "--", sys.executable, str(SCRIPT), "{device}", *words
    )
    records = command.records()
    assert all(record.outcome.status == "ok" for record in records), (
        err,
        [record.outcome for record in records],
    )
    return records, out + err


def on_cpu(records: list[Record]) -> list[Record]:
    """Return the records of the CPU's side."""
    return [record for record in records if record.device.id == "cpu"]


@pytest.fixture(scope="module")
def searched(
    two_cores: None,
    drawn: Located,
    cache_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[Record], str]:
    """Two rounds of both sides; the first one searches."""
    command = CommandLine(drawn, cache_home, tmp_path_factory.mktemp("searched"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("working"))
        return measured(command, "--steps", str(STEPS), options=("--repeats", "2"))


def test_the_cpu_runs_with_its_best_number_of_threads(searched: tuple[list[Record], str]) -> None:
    records, printed = searched
    first, second = on_cpu(records)
    found = first.threads_search
    assert found is not None
    assert found.step_seconds.keys() >= {"1", str(found.default)}
    assert found.step_seconds[str(found.chosen)] == min(found.step_seconds.values())
    assert second.threads_search == found, (
        "the first process searches, and the second one gets the result"
    )
    for record in (first, second):
        assert record.observed is not None
        assert record.observed.threads == found.chosen
        assert record.slices
        assert Caveat.DEFAULT_THREADS not in record.caveats
    assert all(record.threads_search is None for record in records if record.device.id != "cpu")
    assert f"the CPU with its best number of threads ({found.chosen})" in " ".join(printed.split())


def test_a_search_does_not_change_the_training(searched: tuple[list[Record], str]) -> None:
    record = on_cpu(searched[0])[0]
    assert record.threads_search is not None
    assert record.observed is not None
    words = [sys.executable, str(SCRIPT), "cpu", "--steps", str(STEPS)]
    plain = subprocess.run(words, capture_output=True, text=True, check=True)
    losses = [float(line) for line in plain.stdout.splitlines()]
    assert len(losses) == STEPS
    assert record.observed.losses == pytest.approx(losses, rel=1e-3)


@pytest.mark.slow
def test_a_script_that_fixes_its_threads_keeps_them(command: CommandLine) -> None:
    options = ("--repeats", "1", "--vary", "fix=call,variable,compile")
    records, _ = measured(command, "--fix", "{fix}", options=options)
    assert len(records) == 6
    for record in on_cpu(records):
        assert record.threads_search is None, record.backend.style
        assert Caveat.DEFAULT_THREADS in record.caveats, record.backend.style


@pytest.mark.slow
def test_threads_that_the_user_varies_are_kept(command: CommandLine) -> None:
    options = ("--repeats", "1", "--vary-env", "OMP_NUM_THREADS=1,2")
    records, _ = measured(command, options=options)
    seen = {
        record.process.environment["OMP_NUM_THREADS"]: record
        for record in on_cpu(records)
        if record.process
    }
    assert [seen[number].observed.threads for number in ("1", "2")] == [1, 2]
    assert all(record.threads_search is None for record in seen.values())
    assert all(Caveat.DEFAULT_THREADS in record.caveats for record in seen.values())


@pytest.mark.slow
def test_a_training_that_is_too_short_has_the_caveat(command: CommandLine) -> None:
    records, _ = measured(command, options=("--repeats", "2", "--steps", "12"))
    for record in on_cpu(records):
        assert record.threads_search is None
        assert Caveat.DEFAULT_THREADS in record.caveats
    assert not any(
        Caveat.DEFAULT_THREADS in record.caveats for record in records if record.device.id != "cpu"
    )
