"""The time that the unchanged script is observed, and the conclusions from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from tests.records import a_command
from trainmark.errors import UnknownName
from trainmark.execute.parent.scheduler import RunStopped
from trainmark.execute.protocol.answers import StepsObserved
from trainmark.measure.vendor import Driver, Gpu
from trainmark.record.caveats import Caveat
from trainmark.record.observed import Observed
from trainmark.record.record import Memory, Record, Samples, Slice
from trainmark.study.explain import own_script

TASK: Any = None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(own_script, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def observed(clock: SimpleNamespace, at: float) -> own_script._StepWatch:
    """Watches a script whose first step was reported at a time."""
    preparation = own_script._StepWatch(
        lambda _: None, "the unchanged script", most=1.0, patience=60.0
    )
    clock.now = at
    preparation.answered(TASK, StepsObserved("torch", (), steps=1, seconds=0.0))
    return preparation


def test_it_ends_with_a_report_since_what_came_after_the_last_one_would_be_lost(
    clock: SimpleNamespace,
) -> None:
    preparation = observed(clock, at=10.0)
    clock.now = 11.5
    preparation.counted(TASK, 3)
    preparation.answered(TASK, StepsObserved("torch", (), steps=3, seconds=1.5))
    with pytest.raises(RunStopped, match="observed long enough"):
        preparation.counted(TASK, 3)


def test_a_script_that_reports_nothing_more_is_not_waited_for(clock: SimpleNamespace) -> None:
    preparation = observed(clock, at=10.0)
    clock.now = 71.0
    with pytest.raises(RunStopped):
        preparation.counted(TASK, 1)


def test_a_script_without_a_step_is_not_waited_for(clock: SimpleNamespace) -> None:
    preparation = own_script._StepWatch(
        lambda _: None, "the unchanged script", most=1.0, patience=60.0
    )
    clock.now = 59.0
    preparation.counted(TASK, 0)
    clock.now = 61.0
    with pytest.raises(RunStopped, match="no training step"):
        preparation.counted(TASK, 0)


@pytest.mark.parametrize(
    ("printed", "named"),
    [
        (  # by the user's file, not the copy
            "python: can't open file '/tmp/trainmark-scratch-h6mpzr0j/copy/e/train.py': [Errno "
            "2] No such file",
            "python: can't open file 'train.py': [Errno 2] No such file",
        ),
        (
            "Traceback (most recent call last):\n  ...\n"
            "torch._inductor.exc.InductorError: ImportError: no cuda_utils.so\n"
            "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace. For more, set "
            'TORCH_LOGS="+dynamo"\n',
            "torch._inductor.exc.InductorError: ImportError: no cuda_utils.so",
        ),
    ],
    ids=["no error", "advice after an error"],
)
def test_a_failure_names_the_error_or_the_last_line(printed: str, named: str) -> None:
    record: Any = SimpleNamespace(
        outcome=SimpleNamespace(status="failed", reason="exit code 2", stderr_tail=printed)
    )
    assert own_script._why(record) == f"exit code 2: {named}"


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> own_script._Study:
    """A script that waits in line 7 for half of its time, without an experiment that gave
    anything."""
    command: Any = SimpleNamespace(name="train.py", directory=tmp_path)
    anything: Any = None
    made = own_script._Study(command, anything, anything, lambda *_: None, 60.0)
    made.observed = Observed(
        "torch", (), 101, 2.0, sync_seconds=0.5, syncs={"train.py:7 .item()": 10_000}
    )
    made.facts = {"own": {"train.py:7": 0.5}, "samples": 100}
    made.records[own_script.UNCHANGED] = []
    monkeypatch.setattr(made, "_watch_unchanged", lambda: (made.observed, made.facts))
    monkeypatch.setattr(made, "_screen", lambda _: {})
    monkeypatch.setattr(made, "_measure_again", lambda _: [])
    return made


def test_a_slow_statement_is_named_by_what_takes_its_time(study: own_script._Study) -> None:
    names = {}
    for seconds in (0.5, 0.001):
        study.observed = dataclasses.replace(study.observed, sync_seconds=seconds)
        found = study._of_lines()
        assert found is not None
        names[seconds] = (found.change, found.place)
    assert names == {0.5: ("no-sync", "train.py:7"), 0.001: ("line", "train.py:7")}


def test_a_slow_statement_is_named_though_the_experiment_with_its_reads_failed(
    study: own_script._Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def screen(_: object) -> dict[str, own_script.Finding]:
        study.left_out["no-sync"] = "no evidence that it took effect"
        return {}

    monkeypatch.setattr(study, "_screen", screen)
    assert [each.change for each in study.explain(["no-sync", "line"]).findings] == ["line"]


def test_the_line_that_waits_longest_is_named_not_the_one_with_most_reads_nor_one_of_the_loader(
    study: own_script._Study,
) -> None:
    reads = {
        "train.py:3 int()": 6400,
        "train.py:8 .item()": 200,
        "train.py:9 .tolist()": 100,
        "train.py:20 .item()": 9,
    }
    study.observed = dataclasses.replace(study.observed, syncs=reads)
    lines = {"train.py:3": 0.4, "train.py:20": 0.3, "train.py:9": 0.2, "train.py:8": 0.1}
    study.facts = {"loading": ["train.py:3"], "lines": lines}
    assert study._place("sync") == "train.py:9"
    study.facts = {}
    assert study._place("sync") == "train.py:3", "without samples, by their number"


@pytest.mark.parametrize(
    ("used", "most"),
    [
        ([[1, 1], [3, 1], [11, 1]], 5),
        ([[1, 1], [61, 1], [61, 1]], 1),
        ([[1, 51], [13, 61], [13, 61]], 1),
        ([[11, 1], [1, 1], [11, 1]], 4),
        ([[1, 1], [1, 1]], 1),
        ([[None, None]], 1),
        (None, 1),
    ],
    ids=[
        "fits six times",
        "takes all",
        "the fuller decides",
        "after another",
        "did not grow",
        "not read",
        "unknown",
    ],
)
def test_as_many_sides_run_as_fit_on_the_gpu(
    study: own_script._Study,
    monkeypatch: pytest.MonkeyPatch,
    used: list[list[int | None]] | None,
    most: int,
) -> None:
    study.observed = dataclasses.replace(study.observed, device="cuda:0")
    rows = used and [[each and 2**30 * each for each in row] for row in used]
    samples = SimpleNamespace(gpu_memory_bytes=rows, tree_resident_bytes=[1 << 20])
    study.base = cast(Record, SimpleNamespace(samples=samples))
    monkeypatch.setattr(
        own_script,
        "read_driver",
        lambda: Driver(gpus=tuple(Gpu(index, memory_bytes=91 * 2**30) for index in (0, 1))),
    )
    assert study._most_alive() == most


def test_larger_batches_run_alone_on_a_gpu(
    study: own_script._Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "_most_alive", lambda: 8)
    study.observed = dataclasses.replace(study.observed, device="cuda:0")
    assert study._parties(["same-batch", "batch=8", "fused"]) == [
        ["same-batch", "fused"],
        ["batch=8"],
    ]
    assert study._parties(["no-accumulation=4"]) == [["no-accumulation=4"]]
    study.observed = dataclasses.replace(study.observed, device="cpu")
    assert study._parties(["same-batch", "batch=8", "fused"]) == [
        ["same-batch", "batch=8", "fused"]
    ]


def test_unknown_changes_are_refused() -> None:
    own_script.require_changes(["batch=4", "line"])
    for name in ("bf61", "batch="):
        with pytest.raises(UnknownName, match=name):
            own_script.require_changes([name])


def a_run(change: str, seconds: float, status: str = "ok", proof: str = "fused kernels ran") -> Any:
    """A run whose slices take this long; its report shows which change it has."""
    record = a_command()
    slices = [
        Slice(number // 2, 0, float(number), 10, 10, seconds + number / 1000, 320)
        for number in range(8)
    ]
    seen = Observed("torch", (), 101, 2.0, changed={change: proof} if proof else {})
    backend = structs.replace(record.backend, style=f"change={change}" if change else None)
    outcome = structs.replace(record.outcome, status=status)
    return structs.replace(record, slices=slices, observed=seen, backend=backend, outcome=outcome)


@pytest.fixture
def rounds(
    study: own_script._Study, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[list[Any], bool]]:
    """The records of the next rounds, and whether Ctrl-C ends each."""
    coming: list[tuple[list[Any], bool]] = []

    def execute(
        _tasks: object, _seen: object, _store: object, preparation: own_script._StepWatch
    ) -> None:
        records, is_interrupted = coming.pop(0)
        for record in records:
            preparation.recorded(TASK, record)
        if is_interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(own_script, "execute", execute)
    monkeypatch.setattr(study, "_task", lambda *_: None)
    study.base = a_run("", 1.0)
    return coming


def test_what_ctrl_c_leaves_of_the_screening_counts(
    study: own_script._Study, rounds: list[Any]
) -> None:
    records = [a_run("", 1.0, "interrupted"), a_run("fused", 0.5, "interrupted")]
    rounds.append(([*records, a_run("bf16", 1.0, "interrupted", proof="")], True))
    study._round(["", "fused", "bf16"], 4)
    assert study.interrupted
    found = study._finding("fused")
    assert found is not None and found.wins
    assert study._finding("bf16") is None
    assert study._finding("foreach") is None
    assert study.left_out == {"bf16": "interrupted", "foreach": "interrupted"}
    study._round(
        ["", "foreach"], 4
    )  # it does nothing, or there would be an error: no round is coming
    assert not rounds


def test_without_ctrl_c_a_change_without_evidence_says_so(
    study: own_script._Study, rounds: list[Any]
) -> None:
    rounds.append(([a_run("", 1.0), a_run("bf16", 1.0, proof="")], False))
    study._round(["", "bf16"], 4)
    study.interrupted = True  # later
    assert study._finding("bf16") is None
    assert study.left_out == {"bf16": "no evidence that it took effect"}


@pytest.mark.parametrize("alone", [0, 1], ids=["unchanged", "changed"])
def test_what_ran_alone_for_lack_of_memory_is_not_compared(
    study: own_script._Study, rounds: list[Any], alone: int
) -> None:
    records = [a_run("", 1.0), a_run("fused", 0.5)]
    records[alone] = structs.replace(records[alone], caveats=[Caveat.ONE_AFTER_THE_OTHER])
    rounds.append((records, False))
    study._round(["", "fused"], 4)
    assert study._finding("fused") is None
    assert study.left_out == {"fused": "it ended, or memory ran out, before it could be compared"}
    rounds.append(
        (
            [
                structs.replace(a_run(name, pace), round=1)
                for name, pace in (("", 1.0), ("fused", 0.5))
            ],
            False,
        )
    )
    study._round(["", "fused"], 4)
    found = study._finding("fused")
    assert found is not None and found.speedup.value == pytest.approx(2, rel=0.01), (
        "from the other round"
    )


def on(device: str, of_device: int | None, of_host: int, run: Any) -> Any:
    """The run with its weights on ``device``, and these peaks of memory."""
    samples = Samples(interval_seconds=1.0, t=[0.0], tree_resident_bytes=[of_host])
    seen = dataclasses.replace(run.observed, device=device)
    return structs.replace(run, observed=seen, memory=Memory(None, of_device), samples=samples)


@pytest.mark.parametrize(
    ("device", "peaks", "expected"),
    [("cuda:0", (100, 250), 2.5), ("cuda:0", (100, None), None), ("cpu", (None, None), 3.0)],
    ids=["the device's", "unknown", "the host's"],
)
def test_memory_is_that_of_the_device_with_the_weights(
    study: own_script._Study,
    rounds: list[Any],
    device: str,
    peaks: tuple[int | None, int | None],
    expected: float,
) -> None:
    unchanged = on(device, peaks[0], 1000, a_run("", 1.0))
    changed = on(device, peaks[1], 3000, a_run("fused", 0.5))
    rounds.append(([unchanged, changed], False))
    study._round(["", "fused"], 4)
    found = study._finding("fused")
    assert found is not None and found.memory == expected


def test_a_fresh_round_that_ctrl_c_cuts_short_does_not_replace_a_finding(
    study: own_script._Study, rounds: list[Any]
) -> None:
    rounds.append(([a_run("", 1.0), a_run("fused", 0.5)], False))
    study._round(["", "fused"], 4)
    study.screened = {name: len(records) for name, records in study.records.items()}
    rounds.append(([a_run("", 1.0, "interrupted"), a_run("fused", 0.9, "interrupted")], True))
    study._round(["", "fused"], 4)
    assert study.interrupted
    assert study._finding("fused", fresh=True) is None
    assert study.left_out == {}
