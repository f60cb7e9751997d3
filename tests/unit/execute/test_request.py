"""Changes that the options of a run make to a workload's schedule."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from trainmark.data.locate import Located
from trainmark.errors import UsageError
from trainmark.execute.parent import request
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS
from trainmark.execute.parent.request import RunRequest, Selection, scheduled
from trainmark.workload.catalog import find

SEEDED = find("shakespeare-gpt").with_schedule(pytorch_seed=7)


@pytest.mark.parametrize(
    ("name", "option", "steps_per_epoch"),
    [
        ("cifar10-cnn", "epochs", None),  # 20 by default, for a short run; whole passes on request
        ("cifar10-cnn", "steps", None),
        # windows are drawn with replacement, so there are no passes
        ("shakespeare-gpt", "epochs", 250),
        ("shakespeare-gpt", "steps", 250),
    ],
)
def test_requested_epochs_are_whole_passes_if_passes_exist(
    name: str, option: str, steps_per_epoch: int | None
) -> None:
    schedule = scheduled(find(name), dataclasses.replace(RunRequest(), **{option: 7})).schedule
    assert getattr(schedule, option) == 7
    assert schedule.steps_per_epoch == steps_per_epoch


@pytest.mark.parametrize(("precision", "notices"), [("fp32", 1), ("bf16", 0)])
def test_figures_of_another_precision_are_announced(
    precision: str, notices: int, monkeypatch: pytest.MonkeyPatch, drawn: Located
) -> None:
    found = Selection(
        [(find(name), []) for name in ("shakespeare-gpt-10m", "shakespeare-gpt")], [], [], None
    )
    monkeypatch.setattr(request, "select", lambda *_: found)
    monkeypatch.setattr(request, "locate_all", lambda *_: ({"shakespeare": drawn}, []))
    said = request.prepare(RunRequest(published=True, precision=precision)).notices
    assert [each.rpartition(": ")[2] for each in said] == ["--precision bf16"] * notices


@pytest.mark.parametrize(("name", "found"), [("shakespeare-gpt", "250"), ("cifar10-cnn", "20")])
def test_passes_are_refused_where_an_epoch_has_a_number_of_steps(name: str, found: str) -> None:
    with pytest.raises(
        UsageError, match=f"--dataset-repeats has no effect on {name}: .* epochs of {found} steps"
    ):
        scheduled(find(name), RunRequest(dataset_repeats=3))
    assert (
        scheduled(
            find("cifar10-cnn"), RunRequest(dataset_repeats=3, epochs=2)
        ).schedule.dataset_repeats
        == 3
    )


@pytest.mark.parametrize(
    ("option", "given"), [("--seed", {"settings": Settings(seed=2)}), ("--repeats", {"repeats": 2})]
)
def test_a_seed_of_pytorch_fixes_the_training(option: str, given: dict[str, Any]) -> None:
    gpt = find("shakespeare-gpt")
    published = RunRequest(published=True)
    for workload, asked, seed in ((SEEDED, RunRequest(), 7), (gpt, published, 1337)):
        with pytest.raises(
            UsageError, match=f"{option} has no effect on shakespeare-gpt: .* pytorch_seed, {seed},"
        ):
            scheduled(workload, dataclasses.replace(asked, **given))
    scheduled(gpt, RunRequest(**given))
    scheduled(SEEDED, RunRequest(settings=Settings(seed=7)))  # as in its record


def test_a_seed_of_pytorch_is_the_seed_of_every_run(drawn: Located) -> None:
    scheduled = ScheduledWorkload(SEEDED, drawn, 1)
    side = Side("numpy", "fast", "cpu", THIS)
    assert [Run(scheduled, side, Settings(), repeat, repeat, "", "").seed for repeat in (0, 1)] == [
        7,
        7,
    ]
