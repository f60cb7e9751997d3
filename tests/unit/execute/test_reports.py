"""Reports of a script about its epochs are believed as far as they make sense."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.execute.protocol.answers import (
    EpochEnded,
    Evaluated,
    MetricLogged,
    SliceTimed,
    StepsObserved,
    ThreadsTried,
    Waiting,
)
from trainmark.execute.worker.reports import Reports, ToBeEnded

ORIGIN = 1000.0


def line(event: str, t: float, **more: Any) -> bytes:
    return json.dumps({"trainmark": 1, "event": event, "t": ORIGIN + t, **more}).encode() + b"\n"


def received(*lines: bytes) -> tuple[list[dict[str, Any]], Reports]:
    reports = Reports(0.5)
    return list(reports.take(b"".join(lines), ORIGIN)), reports


def test_an_epoch_begins_where_the_last_line_ended() -> None:
    messages, reports = received(
        line("hello", 1.0, language="C"),
        line("epoch", 3.0, loss=2.0, examples=10, steps=5),
        line("test", 3.5, accuracy=0.5),
        line("epoch", 5.5, loss=1.0),
        line("begin", 7.0),
        line("epoch", 8.0),
    )
    assert [(type(each), each.index, each.seconds) for each in messages] == [
        (EpochEnded, 0, 2.0),
        (Evaluated, 0, 0.5),
        (EpochEnded, 1, 2.0),
        (EpochEnded, 2, 1.0),
    ]
    assert messages[0].start == 1.0
    assert (messages[0].train_loss, messages[0].examples, messages[0].steps) == (2.0, 10, 5)
    assert messages[1].test_accuracy == 0.5
    assert messages[3].examples is None
    assert (reports.language, reports.left_out) == ("C", 0)


def test_a_pause_is_part_of_no_epoch() -> None:
    messages, reports = received(
        line("hello", 1.0),
        line("pause", 2.0, settled=False),
        line("resume", 5.0),
        line("slice", 7.0, start=ORIGIN + 5.5, steps=3, seconds=1.25),
        line("pause", 7.0, settled=False),
        line("resume", 9.0),
        line("epoch", 10.0, examples=60, batches=6),
        line("pause", 10.25, settled=True),
        line("resume", 20.0),
        line("test", 21.0, accuracy=0.5),
        line("epoch", 22.0),
    )
    assert [each for each in messages if isinstance(each, Waiting)] == [
        Waiting(),
        Waiting(),
        Waiting(settled=True),
    ]
    assert [each for each in messages if isinstance(each, SliceTimed)] == [
        SliceTimed(5.5, 3, 3, 1.25, None)
    ]
    first, tested, second = (each for each in messages if isinstance(each, (EpochEnded, Evaluated)))
    assert (first.start, first.seconds, first.batches) == (1.0, 4.0, 6)
    assert first.windows == [(1.0, 1.0), (5.0, 2.0), (9.0, 1.0)]
    assert (tested.seconds, second.seconds, second.windows) == (1.0, 1.0, [(21.0, 1.0)])
    assert (reports.paused_seconds, reports.left_out) == (14.75, 0)


@pytest.mark.parametrize(
    "said",
    [
        {"start": ORIGIN + 5.0, "steps": 0, "seconds": 1.0},
        {"start": ORIGIN + 5.0, "steps": 3, "seconds": 2.5},
        {"start": ORIGIN - 5.0, "steps": 3, "seconds": 1.0},
        {"start": ORIGIN + 5.0, "steps": 3},
        {"start": math.nan, "steps": 3, "seconds": 1.0},
        {},
    ],
)
def test_a_slice_that_can_not_be_is_left_out(said: dict[str, Any]) -> None:
    messages, reports = received(line("hello", 1.0), line("slice", 7.0, **said))
    assert (messages, reports.left_out) == ([], 1)


def test_without_a_hello_the_first_epoch_begins_with_the_command() -> None:
    (epoch,), _ = received(line("epoch", 3.0))
    assert (epoch.start, epoch.seconds) == (0.5, 2.5)


def test_a_line_may_come_in_pieces() -> None:
    reports = Reports(0.0)
    whole = line("epoch", 1.0) + line("epoch", 2.0)
    found = [
        message for at in range(len(whole)) for message in reports.take(whole[at : at + 1], ORIGIN)
    ]
    assert [each.index for each in found] == [0, 1]


@pytest.mark.parametrize(
    "odd",
    [
        b"\xff\xfe garbage\n",
        b"{}\n",
        b"[1, 2]\n",
        b'{"trainmark": 2, "event": "epoch", "t": 1003}\n',
        line("surprise", 3.0),
        line("epoch", 0.2),  # this is before the command
        line("epoch", math.nan),
        line("epoch", 3.0, index=7),
        line("test", 3.0),  # it belongs to no epoch
        b'{"trainmark": 1, "event": "epoch", "t": "soon"}\n',
        b'{"trainmark": 1, "event": "epoch", "t": 1' + b"0" * 400 + b"}\n",
        b"[" * 100_000 + b"\n",
    ],
)
def test_what_makes_no_sense_is_left_out_and_counted(odd: bytes) -> None:
    messages, reports = received(line("hello", 1.0), odd, line("epoch", 4.0))
    assert [(each.index, each.seconds) for each in messages] == [(0, 3.0)]
    assert reports.left_out == 1


def test_epochs_out_of_order_are_left_out() -> None:
    messages, reports = received(
        *(line("epoch", 1.0 + at, index=index) for at, index in enumerate((0, 2, 1, 1)))
    )
    assert [each.index for each in messages] == [0, 1]
    assert reports.left_out == 2


def test_a_loss_that_is_not_finite_is_kept_and_reported() -> None:
    messages, reports = received(line("epoch", 1.0, loss=2.0), line("epoch", 2.0, loss="nan"))
    assert math.isnan(messages[1].train_loss)
    assert reports.not_finite == "train loss nan was reported for epoch 2"
    assert reports.last_finite == 2.0


@pytest.mark.parametrize("word", ["NaN", "-nan", "nan", "+Inf", "-Infinity", "inf"])
def test_languages_spell_what_is_not_finite_each_in_its_way(word: str) -> None:
    (epoch,), reports = received(line("epoch", 1.0, loss=word))
    assert not math.isfinite(epoch.train_loss)
    assert reports.left_out == 0
    assert reports.not_finite is not None


@pytest.mark.parametrize(
    "odd",
    [
        {"loss": "abc"},
        {"accuracy": 97.5},
        {"steps": "6"},
        {"examples": -1},
        {"data_wait_seconds": [1]},
    ],
)
def test_the_rest_of_a_line_with_an_invalid_value_is_kept(
    odd: dict[str, Any],
) -> None:
    (epoch,), reports = received(line("epoch", 1.0, **{"loss": 2.0, "steps": 7, **odd}))
    assert epoch.seconds == 0.5
    assert reports.left_out == 1
    ((name, value),) = odd.items()
    assert reports.odd == [f"{name} {value!r} of epoch 1"]
    assert next(iter(odd)) in ("loss", "steps") or (epoch.train_loss, epoch.steps) == (2.0, 7)


def test_a_process_that_says_hello_later_is_a_child_of_the_first() -> None:
    messages, reports = received(
        line("hello", 1.0), line("hello", 2.0, language="worker"), line("epoch", 3.0)
    )
    assert messages[0].seconds == 2.0
    assert (reports.language, reports.left_out) == (None, 0)


def test_nothing_happens_later_than_now() -> None:
    reports = Reports(0.0)
    future = line("epoch", 1e9)
    honest = line("epoch", 2.0)
    found = list(reports.take(future + honest, ORIGIN, ORIGIN + 2.5))
    assert [each.seconds for each in found] == [2.0]
    assert reports.left_out == 1


def test_a_process_that_floods_the_pipe_is_not_read_any_more() -> None:
    reports = Reports(0.0)
    list(reports.take(b"y\n" * 20_000, ORIGIN))
    assert list(reports.take(line("epoch", 1.0), ORIGIN)) == []
    assert list(reports.take(line("pause", 2.0), ORIGIN)) == [Waiting(settled=False)], (
        "the other sides get their turn"
    )


def test_a_training_that_recovers_did_not_diverge() -> None:
    _, reports = received(line("epoch", 1.0, loss="inf"), line("epoch", 2.0, loss=1.0))
    assert reports.not_finite is None


def test_a_line_without_an_end_does_not_fill_memory() -> None:
    reports = Reports(0.0)
    for _ in range(100):
        list(reports.take(b"x" * 65536, ORIGIN))
    assert len(reports._pending) < 2 << 20
    assert reports.left_out > 0


@given(
    st.lists(
        st.binary(max_size=200)
        | st.from_regex(rb'\{"trainmark":1,"event":"(epoch|test|begin)","t":1[0-9]{3,6}\}')
    )
)
def test_times_never_run_backwards(parts: list[bytes]) -> None:
    messages, _ = received(*(part + b"\n" for part in parts))
    for each in messages:
        assert each.seconds >= 0
    epochs = [each for each in messages if isinstance(each, EpochEnded)]
    assert [each.index for each in epochs] == list(range(len(epochs)))


SEEN = {"framework": "torch", "injected": ["torch.save"], "steps": 7, "seconds": 0.5}


def test_what_the_observer_saw_is_passed_on() -> None:
    (seen, epoch), reports = received(
        line("hello", 1.0),
        line(
            "observed",
            2.0,
            **SEEN,
            losses=[2.0, "nan"],
            places={"model": "a.py:3", "loader": 5},
            later="a new key",
        ),
        line("evaluated", 2.5, seconds=0.5),
        line("epoch", 3.0),
    )
    assert isinstance(seen, StepsObserved)
    assert (seen.steps, seen.losses[0], seen.places, seen.injected) == (
        7,
        2.0,
        {"model": "a.py:3"},
        ("torch.save",),
    )
    assert math.isnan(seen.losses[1])
    # evaluation is no training
    assert (epoch.seconds, epoch.start, reports.left_out) == (1.5, 1.0, 0)


def test_the_memory_at_steps_is_passed_on_as_far_as_it_can_be() -> None:
    parts = [[1, 5.0, None], [2, "nan", 7], [3, -1, 7], [0, 1, 1], [4, 5], "x", [5, 2**60, True]]
    seen = {"framework": "torch", "injected": [], "steps": 3, "seconds": 1.0}
    (found,), _ = received(
        line("step_memory", 1.0, parts=parts), line("observed", 1.0, losses=[], **seen)
    )
    assert isinstance(found, StepsObserved)
    assert found.step_memory == (
        (1.0, 5.0, None),
        (2.0, None, 7.0),
        (3.0, None, 7.0),
        (5.0, None, None),
    )


def test_reads_of_steps_are_numbers() -> None:
    reads = {"a.py:3 float()": 6, "a.py:4 float()": "six"}
    (seen,), _ = received(line("observed", 2.0, **SEEN, step_reads=reads))
    assert isinstance(seen, StepsObserved)
    assert seen.step_reads == {"a.py:3 float()": 6}


def test_a_training_that_waits_to_be_ended_ends_early() -> None:
    seen = {"framework": "torch", "injected": [], "steps": 7, "seconds": 1.0}
    messages, reports = received(line("observed", 2.0, losses=[1.0], **seen), line("end", 3.0))
    *observed, last = messages
    assert [(each.steps, each.losses, each.ended_early) for each in observed] == [
        (7, [1.0], False),
        (7, [], True),
    ]
    assert isinstance(last, ToBeEnded)
    assert reports.left_out == 0


@pytest.mark.parametrize(
    "odd", [{"steps": -1}, {"steps": "7"}, {"seconds": 1e300}, {"injected": 3}, {"framework": None}]
)
def test_what_the_observer_can_not_have_seen_is_left_out(odd: dict[str, Any]) -> None:
    messages, reports = received(
        line("hello", 1.0), line("observed", 2.0, **{**SEEN, **odd}), line("epoch", 3.0)
    )
    assert [type(each) for each in messages] == [EpochEnded]
    assert reports.left_out == 1


def test_versions_come_with_the_first_observed_steps() -> None:
    _, reports = received(
        line("hello", 1.0), line("observed", 2.0, **SEEN, packages={"torch": "2.8.0", "odd": 3})
    )
    assert reports.packages == {"torch": "2.8.0"}
    assert reports.left_out == 0


def test_a_search_for_the_number_of_threads_is_reported() -> None:
    messages, reports = received(
        line("threads", 2.0, chosen=1, default=4, step_seconds={"1": 0.01, "4": 0.02})
    )
    assert messages == [ThreadsTried(chosen=1, default=4, tried=[(1, 0.01), (4, 0.02)])]
    assert reports.left_out == 0


@pytest.mark.parametrize(
    "figures",
    [
        {"chosen": 2, "default": 4, "step_seconds": {"1": 0.01, "4": 0.02}},
        {"chosen": 1, "default": 4, "step_seconds": {"1": 0.0, "4": 0.02}},
        {"chosen": 1, "default": 4, "step_seconds": {"1": "fast", "4": 0.02}},
        {"chosen": 1, "default": 1, "step_seconds": {"01": 0.01}},
        {"chosen": 1, "default": 1, "step_seconds": [1]},
        {},
    ],
)
def test_an_invalid_search_is_left_out(figures: dict[str, Any]) -> None:
    messages, reports = received(line("threads", 2.0, **figures))
    assert (messages, reports.left_out) == ([], 1)


@pytest.mark.parametrize("others", [5, None, "lr", {"lr": 1}, True])
def test_other_names_that_are_no_list_are_left_out(others: object) -> None:
    messages, _ = received(
        line("logged", 2.0, tag="loss", count=1, values=[[0, 0.5]], others=others)
    )
    assert messages == [MetricLogged("loss", 1, [(0, 0.5)], [], [])]
