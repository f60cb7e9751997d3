"""The record that a run's answers make, however the run ended."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from msgspec import structs

from trainmark.data.locate import Located
from trainmark.errors import ProtocolError
from trainmark.execute.parent.machine_state import MachineState
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS, Seen
from trainmark.execute.parent.training_record import TrainingRecordBuilder
from trainmark.execute.protocol.answers import (
    Answer,
    Compiled,
    EpochEnded,
    Evaluated,
    EvaluatedBefore,
    Finished,
    LoggedStep,
    Ready,
    SliceTimed,
)
from trainmark.measure.vendor import Driver
from trainmark.record.caveats import Caveat
from trainmark.record.facts import RunKey
from trainmark.record.record import Machine, Outcome, Samples
from trainmark.workload import catalog
from trainmark.workload.schedule import Target

DATA = Located("mnist", Path("/data"), "named", "5f" * 32, True, 60_000, 10_000)
HERE = MachineState(
    Machine("m", "Linux", "x86_64", None, 1, 2, 2, 1 << 33, [], None, 0.0), Driver(), (0, 1)
)
WORKLOAD = catalog.find("mnist-mlp512").with_schedule(steps=4, steps_per_epoch=2, epochs=2)
READY = Ready(0.5, {"torch": "2"}, steps=4, epochs=2, weights_sha256="ab")


def run(**changes: object) -> Run:
    scheduled = ScheduledWorkload(WORKLOAD.with_schedule(**changes), DATA, 1)
    return Run(scheduled, Side("torch", "fast", "cpu", THIS), Settings(), 0, 0, "plan", "plan")


def epoch(index: int, *losses: float) -> EpochEnded:
    return EpochEnded(
        index, 1.0 + 3 * index, 2.0, len(losses), 256, list(losses), train_loss=losses[-1]
    )


def evaluated(index: int, accuracy: float) -> Evaluated:
    return Evaluated(index, 0.25, 0.4, accuracy)


def notes(*answers: Answer, of: Run | None = None) -> TrainingRecordBuilder:
    made = TrainingRecordBuilder(
        of or run(), Seen("torch", THIS), HERE, None, replayed=False, token="t"
    )
    for answer in answers:
        made.on_answer(answer)
    return made


WHOLE = (
    READY,
    Compiled(None),
    epoch(0, 2.3, 2.0),
    evaluated(0, 0.6),
    epoch(1, 1.5, 1.0),
    evaluated(1, 0.8),
    Finished(),
)


def test_a_finished_run() -> None:
    record = notes(*WHOLE).record(Outcome("ok"))
    assert record.step_losses == [2.3, 2.0, 1.5, 1.0]
    assert (record.final.train_loss, record.final.test_accuracy, record.final.training_seconds) == (
        1.0,
        0.8,
        4.0,
    )
    assert (record.setup_seconds, record.python.packages) == (0.5, {"torch": "2"})
    assert record.model is not None and record.model.initial_weights_sha256 == "ab"
    assert Caveat.NOT_LEARNING not in record.caveats


def test_the_evaluation_before_the_first_step_is_kept() -> None:
    record = notes(READY, EvaluatedBefore(0.1, 4.16, 0.02, 4.17, 0.01), *WHOLE[1:]).record(
        Outcome("ok")
    )
    assert record.before is not None and (record.before.test_loss, record.before.train_loss) == (
        4.16,
        4.17,
    )
    assert notes(*WHOLE).record(Outcome("ok")).before is None


def test_random_data_is_not_judged() -> None:
    tokens = dataclasses.replace(DATA, name="random-tokens", source="memory")
    scheduled = ScheduledWorkload(catalog.find("gpt2-124m"), tokens, 1)
    flat = (READY, epoch(0, 10.8, 10.8), Finished())
    caveats = (
        notes(*flat, of=dataclasses.replace(run(), scheduled=scheduled))
        .record(Outcome("ok"))
        .caveats
    )
    assert Caveat.RANDOM_DATA in caveats and Caveat.NOT_LEARNING not in caveats


def test_reports_of_a_failed_run_are_kept() -> None:
    record = notes(*WHOLE[:3]).record(Outcome("failed", "gone"))
    assert (len(record.epochs), record.final.test_accuracy, record.step_losses) == (
        1,
        None,
        [2.3, 2.0],
    )


def test_a_loss_that_does_not_fall_has_a_caveat() -> None:
    flat = (
        READY,
        epoch(0, 2.3, 2.3),
        evaluated(0, 0.1),
        epoch(1, 2.3, 2.3),
        evaluated(1, 0.1),
        Finished(),
    )
    assert Caveat.NOT_LEARNING in notes(*flat).record(Outcome("ok")).caveats


def test_weights_that_do_not_change_have_a_caveat() -> None:
    still = dataclasses.replace(WHOLE[-1], unchanged_weights=["dense1.kernel"])
    assert Caveat.UNMOVED_WEIGHTS in notes(*WHOLE[:-1], still).record(Outcome("ok")).caveats


COMPILED_STEP = {"step": "compiled", "compiled_gain": 1.5}


def compiled(seconds: float, **settings: object) -> TrainingRecordBuilder:
    """A training of 4 s after a compilation."""
    return notes(
        READY, Compiled(seconds), *WHOLE[2:-1], Finished(settings=COMPILED_STEP | settings)
    )


def test_a_training_too_short_for_compiling_has_a_caveat() -> None:
    """4 s of training, 1.5 times as fast as eager steps, saved 2 s."""
    assert Caveat.SHORT_FOR_COMPILING in compiled(2.1).record(Outcome("ok")).caveats
    assert Caveat.SHORT_FOR_COMPILING not in compiled(1.9).record(Outcome("ok")).caveats
    assert (
        Caveat.SHORT_FOR_COMPILING
        not in compiled(2.1, compiled_gain=None).record(Outcome("ok")).caveats
    )


def test_a_step_that_could_not_be_prepared_has_a_caveat() -> None:
    failed = compiled(0.1, step="eager", not_compiled="no compiler", not_captured="no graph")
    caveats = failed.record(Outcome("ok")).caveats
    assert {Caveat.STEP_NOT_COMPILED, Caveat.STEP_NOT_CAPTURED} <= {*caveats}
    assert not {Caveat.STEP_NOT_COMPILED, Caveat.STEP_NOT_CAPTURED} & {
        *compiled(0.1).record(Outcome("ok")).caveats
    }


@pytest.mark.parametrize("state", ["cold", "warm"])
def test_the_state_of_the_compilers_cache_is_kept(state: str) -> None:
    assert compiled(1.0, compile_cache=state).record(Outcome("ok")).backend.compile_cache == state


def test_slices_without_epochs_report_what_disturbed_them() -> None:
    made = notes(READY, Compiled(None), of=dataclasses.replace(run(), blocks=4))
    for order in range(8):
        made.add_slice(
            SliceTimed(float(order), steps=20, timed_steps=18, seconds=0.9, examples=1800),
            order // 2,
            order,
            {},
        )
    stolen = Samples(
        interval_seconds=1.0, t=[float(at) for at in range(9)], stolen_percent=[30.0] * 9
    )
    quiet = structs.replace(stolen, stolen_percent=[0.0] * 9)
    assert Caveat.STOLEN_TIME in made.records(Outcome("ok"), stolen)[-1].caveats
    assert Caveat.STOLEN_TIME not in made.records(Outcome("ok"), quiet)[-1].caveats


def test_the_time_to_a_target_ends_with_its_epoch() -> None:
    target = run(until=Target("test_accuracy", 0.5))
    assert notes(*WHOLE, of=target).record(Outcome("ok")).final.time_to_target_seconds == 2.0
    missed = notes(*WHOLE, of=run(until=Target("test_accuracy", 0.99))).record(Outcome("ok"))
    assert missed.final.time_to_target_seconds is None and Caveat.TARGET_MISSED in missed.caveats


def test_logged_steps_are_kept() -> None:
    logged = dataclasses.replace(WHOLE[2], log=[LoggedStep(0, 2.3, 1_000.0, 0.1)])
    (line,) = notes(READY, logged).record(Outcome("failed", "gone")).log
    assert (line.step, line.loss, line.seconds_per_step) == (0, 2.3, 0.1)


@pytest.mark.parametrize(
    "answers",
    [
        (dataclasses.replace(epoch(0, 2.3, 2.0), steps=3),),
        (dataclasses.replace(epoch(0, 2.3, 2.0), l2_losses=[0.1]),),
        (epoch(0, 2.3, 2.0), dataclasses.replace(epoch(1, 1.0, 1.0), l2_losses=[0.1, 0.1])),
        (epoch(1, 2.3, 2.0),),
        (evaluated(0, 0.5),),
        (epoch(0, 2.3, 2.0), EvaluatedBefore(0.1, 4.2, 0.0)),
    ],
    ids=[
        "too few losses",
        "too few L2 losses",
        "L2 losses from somewhere",
        "a missing epoch",
        "a test of nothing",
        "the first test too late",
    ],
)
def test_answers_that_don_t_fit_together_are_refused(answers: tuple[Answer, ...]) -> None:
    with pytest.raises(ProtocolError):
        notes(READY, *answers)


def test_a_record_has_the_key_of_its_run() -> None:
    here = dataclasses.replace(HERE, machine=structs.replace(HERE.machine, name=run().key.machine))
    record = TrainingRecordBuilder(
        run(), Seen("torch", THIS), here, None, replayed=False, token="t"
    ).record(Outcome("ok"))
    assert RunKey.of(record) == run().key
