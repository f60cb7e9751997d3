"""An earlier complete run of the same command tells how many steps there are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from tests.records import a_record
from trainmark.analysis.whole_run import steps_of_whole_run
from trainmark.record.observed import Observed
from trainmark.record.record import Outcome, Process, Record

SEEN = Observed("torch", (), steps=500, seconds=5.0)
WORDS = ["python", "train.py"]


def run(seen: Observed | None = SEEN, created: str = "2026-01-01", **process: object) -> Record:
    """Return the record of a command that was observed."""
    of = structs.replace(Process(WORDS, "/home/me", program_sha256="5f"), **process)
    return structs.replace(a_record(), process=of, observed=seen, created=created)


CUT = run(replace(SEEN, steps=100, ended_early=True))


def test_the_latest_complete_run_counts() -> None:
    newer = run(replace(SEEN, steps=600), created="2026-01-03")
    assert steps_of_whole_run(CUT, [CUT, newer, run()]) == 600


@pytest.mark.parametrize(
    "other",
    [
        CUT,
        run(None),
        run(replace(SEEN, training_starts=(0, 100))),
        run(argv=[*WORDS, "--lr", "1"]),
        run(directory="/home/you"),
        run(program_sha256="60"),
        run(environment={"WORKERS": "2"}),
        structs.replace(run(), outcome=Outcome("failed", "it failed")),
        a_record(),
    ],
    ids=[
        "ended early",
        "not observed",
        "several trainings",
        "other words",
        "another folder",
        "another script",
        "another environment",
        "failed",
        "a network of trainmark",
    ],
)
def test_other_runs_tell_nothing(other: Record) -> None:
    assert steps_of_whole_run(CUT, [other]) is None


def test_a_program_without_a_checksum_may_be_another_one() -> None:
    cut = run(SEEN, program_sha256=None)
    assert steps_of_whole_run(cut, [cut]) is None
