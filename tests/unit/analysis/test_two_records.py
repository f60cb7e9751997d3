"""Reasons why two runs differ."""

from __future__ import annotations

import msgspec
import pytest

from tests.records import WARM_UP, a_record
from trainmark.analysis.two_records import set_against


def test_equal_runs_that_are_as_near_as_their_own_epochs() -> None:
    found = set_against(
        a_record(seconds=(WARM_UP, 2.0, 2.2)), a_record(seconds=(WARM_UP, 2.1, 2.2))
    )
    assert (found.contrasts, found.noise) == ((), True)


def test_equal_runs_that_are_further_apart_than_their_epochs() -> None:
    found = set_against(
        a_record(seconds=(WARM_UP, 2.0, 2.0)), a_record(seconds=(WARM_UP, 1.0, 1.0))
    )
    assert found.contrasts == ()
    assert not found.noise
    assert found.ratio == pytest.approx(2)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"style": "idiomatic"}, "style (input path, compilation)"),
        ({"precision": "bf16"}, "precision"),
        ({"threads": 1}, "threads"),
        ({"version": "9.9"}, "backend"),
        ({"machine": "elsewhere"}, "machine"),
    ],
)
def test_what_was_changed_is_named(changes: dict[str, object], what: str) -> None:
    found = set_against(a_record(), a_record(**changes))  # type: ignore[arg-type]
    assert what in {contrast.what for contrast in found.contrasts}
    assert not found.noise


def test_a_run_without_an_epoch_has_no_pace() -> None:
    assert set_against(a_record(), a_record(seconds=())).ratio is None


def test_what_one_run_did_not_come_to_know_is_no_difference() -> None:
    known = a_record(seconds=(WARM_UP, 2.0, 2.0))
    unknown = msgspec.structs.replace(
        known, machine=msgspec.structs.replace(known.machine, load_before=None)
    )
    known = msgspec.structs.replace(
        known, machine=msgspec.structs.replace(known.machine, load_before=0.5)
    )
    assert set_against(known, unknown).contrasts == ()
