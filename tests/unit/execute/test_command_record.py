"""What the record of a command says about whether it learns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from trainmark.execute.parent.command import Command, sides
from trainmark.execute.parent.command_record import CommandRecordBuilder
from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.task import command_in_rounds
from trainmark.execute.protocol.answers import StepsObserved
from trainmark.record.caveats import Caveat
from trainmark.record.observed import LOSS_DID_NOT_FALL
from trainmark.record.record import Outcome, Record

FALLS = [1.0 - number / 40 for number in range(20)]
RISES = FALLS[::-1]
OF_A_GAN = {"learning": "several optimisers step in turn"}


def builder() -> CommandRecordBuilder:
    command = Command("train.py", ("python", "train.py"), Path("/work"))
    (task,) = command_in_rounds(command, sides(command, (), {}), 1, Settings())
    return CommandRecordBuilder(task.first, read_machine_state({}), "01234567")


def recorded(losses: list[float], **facts: Any) -> Record:
    building = builder()
    building.on_answer(StepsObserved("torch", (), steps=20, seconds=1.0, losses=losses, **facts))
    return building.record(Outcome("ok"))


def about_learning(record: Record) -> set[Caveat]:
    return {*record.caveats} & {Caveat.NOT_LEARNING, Caveat.LEARNING_UNSEEN}


def test_a_loss_that_falls_has_no_caveat() -> None:
    assert about_learning(recorded(FALLS)) == set()


def test_an_observed_loss_that_rises_is_not_judged() -> None:
    record = recorded(RISES)
    assert about_learning(record) == {Caveat.LEARNING_UNSEEN}
    assert record.observed is not None
    assert record.observed.unknown["learning"] == LOSS_DID_NOT_FALL


def test_a_loss_that_the_script_reports_itself_should_fall() -> None:
    assert about_learning(recorded(RISES, own_epochs=True)) == {Caveat.NOT_LEARNING}


@pytest.mark.parametrize("losses", [FALLS, RISES])
@pytest.mark.parametrize("own_epochs", [False, True])
def test_the_loss_of_a_gan_is_never_judged(losses: list[float], own_epochs: bool) -> None:
    record = recorded(losses, unknown=OF_A_GAN, own_epochs=own_epochs)
    assert about_learning(record) == {Caveat.LEARNING_UNSEEN}


@pytest.mark.parametrize("unknown", [{}, OF_A_GAN])
def test_a_loss_that_is_not_finite_is_never_learning(unknown: dict[str, str]) -> None:
    record = recorded([*FALLS, math.nan], unknown=unknown)
    assert Caveat.NOT_LEARNING in record.caveats
