"""What the options of a run change in a workload's schedule."""

from __future__ import annotations

import dataclasses

import pytest

from trainmark.execute.parent.request import Request, scheduled
from trainmark.workload.catalog import find


@pytest.mark.parametrize(
    ("name", "option", "steps_per_epoch"),
    [
        ("cifar10-cnn", "epochs", None),  # 20 by default, for a short run; whole passes on request
        ("cifar10-cnn", "steps", None),
        ("shakespeare-gpt", "epochs", 250),  # windows are drawn with replacement, so there are no passes
        ("shakespeare-gpt", "steps", 250),
    ],
)
def test_an_epoch_is_a_whole_pass_on_request_where_there_are_passes(
    name: str, option: str, steps_per_epoch: int | None
) -> None:
    schedule = scheduled(find(name), dataclasses.replace(Request(), **{option: 7})).schedule
    assert getattr(schedule, option) == 7
    assert schedule.steps_per_epoch == steps_per_epoch
