"""What is concluded from experiments on a user's script; the host plays the script, without
processes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.records import a_command
from trainmark.analysis.changes import SAMPLED
from trainmark.errors import ExplanationFailed, UnknownName
from trainmark.execute.parent.command import Command, CommandRun
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.scheduler import RunObserver, RunStopped
from trainmark.execute.parent.task import Task
from trainmark.execute.parent.time_limit import TimeLimit
from trainmark.execute.protocol.answers import StepsObserved
from trainmark.inject.changes import OLD_VALUES_AT
from trainmark.measure.vendor import Gpu
from trainmark.record.caveats import Caveat
from trainmark.record.observed import Observed
from trainmark.record.record import Memory, Outcome, Record, Samples, Slice
from trainmark.record.store import Store
from trainmark.study.explain import own_script
from trainmark.study.explain.experiment_host import ExperimentHost
from trainmark.study.explain.own_script import OwnScript

GIB = 1 << 30
ROUND_SECONDS = 5.0
SEEN = Observed("torch", (), steps=101, seconds=2.0)
UNCHANGED = ""
FEWEST_SECONDS = 0.1
"""Duration of ten steps of a process that has the memory for itself."""


@dataclass(frozen=True)
class Behaviour:
    """What the script does with a change.

    Args:
        seconds: duration of ten steps.
        later: the same in all rounds but the first, if different.
        unsteady: by how much every other round is slower, and the others faster.
        proof: evidence that the change took effect; empty if there is none.
        device_bytes: peak memory of the device.
        host_bytes: peak memory of the host.
    """

    seconds: float = 1.0
    later: float | None = None
    unsteady: float = 0.0
    proof: str = "it took effect"
    device_bytes: int | None = None
    host_bytes: int = 1 << 20


@dataclass
class FakeHost(ExperimentHost):
    """Plays a script.

    Args:
        seen: what the unchanged script does.
        facts: what the change ``facts`` reports of it.
        script: what the script reports until it ends, with the time: its steps so far, or an
            answer.
        outcome: how the unchanged script ends when it is watched.
        changes: its behaviour by change.
        gpu_rows: used memory of each GPU, in GiB, while the unchanged script is watched.
        memory: free memory.
        interrupted_in: the round in which Ctrl-C arrives, counted from 1.
        alone: by round, the change whose process found no memory next to the others.
        hanging: a change that never answers; None if all do.
        hangs_from: the round from which it does not, counted from 1.
        round_seconds: duration of a round.
        ratios: what changes give that are tried within one process; 1 for the others.
        tries_fail: whether that process fails.
    """

    seen: Observed = SEEN
    facts: dict[str, Any] = field(default_factory=dict)
    script: Sequence[tuple[float, StepsObserved | int]] = (
        (1.0, StepsObserved("torch", (), steps=101, seconds=0.5)),
    )
    outcome: Outcome = field(default_factory=lambda: Outcome("ok"))
    changes: dict[str, Behaviour] = field(default_factory=dict)
    gpu_rows: list[list[int | None]] | None = None
    memory: int = 8 * GIB
    interrupted_in: int | None = None
    alone: dict[int, str] = field(default_factory=dict)
    hanging: str | None = None
    hangs_from: int = 1
    round_seconds: float = ROUND_SECONDS
    ratios: dict[str, float] = field(default_factory=dict)
    tries_fail: bool = False

    def __post_init__(self) -> None:
        self.time = 0.0
        self.limits: list[TimeLimit] = []
        self.rounds: list[list[str]] = []
        self.tried: list[list[str]] = []
        self.files: list[dict[str, str]] = []
        self.stopped: tuple[float, str] | None = None

    def now(self) -> float:
        return self.time

    def available_memory(self) -> int:
        return self.memory

    def gpus(self) -> Sequence[Gpu]:
        return [Gpu(index, memory_bytes=91 * GIB) for index in (0, 1)]

    def run(
        self,
        tasks: Sequence[Task[CommandRun]],
        store: Store,
        observer: RunObserver,
        limit: TimeLimit,
    ) -> list[Record]:
        changes = [task.first.side.values.get("change", UNCHANGED) for task in tasks]
        if changes == ["facts"]:
            return [self._watched(tasks[0], observer, limit)]
        if changes[0].startswith("trials="):
            return [self._tried(tasks[0], changes[0], observer)]
        self.rounds.append(changes)
        self.files += [dict(task.first.side.files) for task in tasks]
        self.limits.append(limit)
        began = self.time
        self.time = min(began + self.round_seconds, limit.seconds)
        records = list(map(self._record, tasks, changes))
        if self.hanging in changes and len(self.rounds) >= self.hangs_from:
            self.time = min(self.time + limit.patience, limit.seconds)
            late = changes.index(self.hanging)
            records[late] = _without_result(records[late], "no answer")
        elif began + self.round_seconds > limit.seconds:
            records = [_without_result(record, limit.reason) for record in records]
        for task, record in zip(tasks, records, strict=True):
            observer.recorded(task, record)
        if len(self.rounds) == self.interrupted_in:
            raise KeyboardInterrupt
        return records

    def _watched(self, task: Task[CommandRun], observer: RunObserver, limit: TimeLimit) -> Record:
        """Report what the script does, until it ends, or the observer or the limit ends it."""
        reported = False
        outcome = self.outcome
        for now, report in self.script:
            self.time = min(now, limit.seconds)
            if now >= limit.seconds:
                outcome = Outcome("ok" if reported else "timeout", limit.reason)
                break
            try:
                if isinstance(report, StepsObserved):
                    observer.answered(task, report)
                    reported = True
                else:
                    observer.counted(task, report)
            except RunStopped as stopped:
                self.stopped = (self.time, str(stopped))
                break
        seen = replace(self.seen, changed={"facts": json.dumps(self.facts)})
        unchanged = self.changes.get(UNCHANGED, Behaviour())
        record = structs.replace(
            a_command(),
            outcome=outcome,
            observed=seen if reported else None,
            samples=self._samples(unchanged),
        )
        observer.recorded(task, record)
        return record

    def _tried(self, task: Task[CommandRun], change: str, observer: RunObserver) -> Record:
        """Try changes within one process."""
        names = change.partition("=")[2].split(";")
        self.tried.append(names)
        self.time += self.round_seconds
        found = {name: [self.ratios.get(name, 1.0)] * 2 for name in names}
        seen = replace(self.seen, changed={change: json.dumps(found)})
        record = structs.replace(a_command(), observed=None if self.tries_fail else seen)
        observer.recorded(task, record)
        return record

    def _record(self, task: Task[CommandRun], change: str) -> Record:
        number = len(self.rounds)
        behaviour = self.changes.get(change, Behaviour())
        seconds = behaviour.seconds
        if number > 1 and behaviour.later is not None:
            seconds = behaviour.later
        is_alone = self.alone.get(number) == change
        if is_alone:
            seconds = FEWEST_SECONDS
        seconds *= 1 + (behaviour.unsteady if number % 2 else -behaviour.unsteady)
        slices = [
            Slice(index // 2, 0, float(index), 10, 10, seconds + index / 1000, 320)
            for index in range(8)
        ]
        record = a_command(side=f"change={change}" if change else None, round=task.round)
        proofs = {each: behaviour.proof for each in change.split("+") if behaviour.proof}
        return structs.replace(
            record,
            outcome=Outcome("interrupted" if number == self.interrupted_in else "ok"),
            slices=slices,
            observed=replace(self.seen, changed=proofs),
            memory=Memory(None, behaviour.device_bytes),
            samples=self._samples(behaviour),
            caveats=[Caveat.ONE_AFTER_THE_OTHER] if is_alone else [],
        )

    def _samples(self, behaviour: Behaviour) -> Samples:
        rows: list[list[int | None]] | None = None
        if self.gpu_rows is not None:
            rows = [[each and each * GIB for each in row] for row in self.gpu_rows]
        return Samples(
            interval_seconds=1.0,
            t=[0.0],
            tree_resident_bytes=[behaviour.host_bytes],
            gpu_memory_bytes=rows,
        )


def _without_result(record: Record, reason: str) -> Record:
    return structs.replace(record, outcome=Outcome("timeout", reason), slices=[], observed=None)


def explained(host: FakeHost, *only: str, seconds: float = 60.0) -> OwnScript:
    def ignore(_what: str, _share: float) -> None:
        """Show no progress."""

    command = Command("train.py", ("python", "train.py"), Path("nowhere"))
    return own_script.explain(command, Settings(), ignore, seconds, only, host)


def speedups(found: OwnScript) -> dict[str, float]:
    return {each.change: each.speedup.value for each in found.findings}


def steps(number: int, seconds: float) -> StepsObserved:
    return StepsObserved("torch", (), steps=number, seconds=seconds)


def test_watching_ends_only_after_a_report() -> None:
    """What came after the last report would be lost."""
    host = FakeHost(script=[(2.0, steps(1, 0.0)), (3.4, 3), (3.5, steps(3, 1.5)), (3.6, 3)])
    explained(host, "fused", seconds=10.0)
    assert host.stopped == (3.6, "observed long enough")


def test_a_script_that_falls_silent_is_stopped() -> None:
    host = FakeHost(script=[(10.0, steps(2, 0.0)), (21.9, 2), (22.1, 2), (40.0, 2)])
    explained(host, "fused", seconds=60.0)
    assert host.stopped == (22.1, "observed long enough")


def refused(script: Sequence[tuple[float, StepsObserved | int]], seconds: float) -> str:
    """Explain a script that can't be explained; returns the message."""
    host = FakeHost(script=script, seen=replace(SEEN, steps=1))
    with pytest.raises(ExplanationFailed, match="can't be explained") as error:
        explained(host, "fused", seconds=seconds)
    assert host.time <= seconds
    return str(error.value)


def test_a_script_without_a_step_is_refused_at_the_limit() -> None:
    message = refused([(9.9, 0), (10.1, 0), (80.0, 0)], 10.0)
    assert "0 training steps in 10.0 s" in message
    assert re.search(r"--seconds \d", message) is None, "how many seconds it needs is not known"


def test_a_late_first_step_says_how_many_seconds_are_needed() -> None:
    message = refused([(28.0, steps(1, 0.0)), (80.0, 0)], 30.0)
    needed = re.search(r"first step comes after 28.0 s, so use --seconds (\d+)", message)
    assert needed is not None and int(needed[1]) >= 40


def test_a_script_that_hangs_after_a_step_needs_no_longer_time() -> None:
    message = refused([(2.0, steps(1, 0.0)), (200.0, 0)], 120.0)
    assert "may hang" in message
    assert re.search(r"--seconds \d", message) is None


def test_changes_are_left_out_if_none_fits() -> None:
    host = FakeHost(script=[(40.0, steps(2, 0.0)), (42.0, steps(9, 8.0)), (42.1, 9)])
    found = explained(host, "fused", "bf16", seconds=60.0)
    assert host.rounds == []
    assert set(found.left_out) == {"fused", "bf16"}
    for why in found.left_out.values():
        needed = re.fullmatch(r"not enough time; use --seconds (\d+)", why)
        assert needed is not None and int(needed[1]) > 60


def test_of_long_steps_a_few_blocks_are_better_than_no_answer() -> None:
    """Four blocks would not fit into the time, but two do."""
    slow = replace(SEEN, steps=5, seconds=10.0)
    host = FakeHost(seen=slow, script=[(5.0, steps(2, 0.0)), (15.0, steps(5, 10.0)), (15.1, 5)])
    found = explained(host, seconds=90.0)
    assert host.rounds[0][0] == UNCHANGED
    assert len(host.rounds[0]) == 2
    assert len(found.findings) > 0


def test_a_hanging_change_leaves_the_others_their_results() -> None:
    host = FakeHost(changes={"fused": Behaviour(0.5)}, hanging="bf16")
    found = explained(host, "fused", "bf16")
    assert "fused" in speedups(found)
    assert found.left_out == {"bf16": "no answer"}
    assert host.limits[0].patience < host.limits[0].seconds


def test_a_change_that_is_late_later_keeps_its_first_result() -> None:
    host = FakeHost(changes={"fused": Behaviour(0.5)}, hanging="fused", hangs_from=2)
    found = explained(host, "fused")
    (finding,) = found.findings
    assert (finding.change, finding.wins, finding.fresh) == ("fused", True, False)
    assert found.left_out == {}


def test_time_that_is_left_is_used_for_more_changes() -> None:
    unchanged = [(8.0, steps(2, 0.0)), (44.0, steps(9, 5.0)), (44.1, 9)]
    host = FakeHost(script=unchanged, facts={"optimizer": "SGD", "fused": False})
    found = explained(host, seconds=90.0)
    tried = [change for changes in host.rounds for change in changes if change]
    assert len(host.rounds) > 1, "nothing wins, so there is nothing to measure again"
    assert len(set(tried)) == len(tried)
    assert {each.change for each in found.findings} == set(tried)
    assert not found.left_out.keys() & set(tried)
    assert host.time <= 90.0


SLOW_TO_START = ((13.0, StepsObserved("torch", (), steps=101, seconds=0.5)),)
TRIED = {"optimizer": "Adam", "fused": None, "foreach": None, "conv": True}


def test_where_a_start_takes_long_changes_are_first_tried_within_one_process() -> None:
    seen = replace(SEEN, precision="float32")
    ratios = {"bf16": 1.5, "fused": 1.05}
    host = FakeHost(seen=seen, script=SLOW_TO_START, facts=TRIED, ratios=ratios)
    found = explained(host, seconds=120.0)
    assert host.tried == [["fused", "threads=1", "bf16", "foreach"]]
    assert host.rounds[0] == [UNCHANGED, "bf16", "same-batch", "channels-last", "fused"]
    assert found.left_out["threads=1"].startswith("no gain in short trials within one process")


def test_where_all_changes_fit_each_gets_a_process() -> None:
    host = FakeHost(facts=TRIED)
    explained(host, seconds=600.0)
    assert host.tried == []


def test_named_changes_are_never_left_out_for_a_short_try() -> None:
    host = FakeHost(script=SLOW_TO_START, facts=TRIED)
    explained(host, "fused", "bf16", "foreach", seconds=60.0)
    assert host.tried == []


def test_a_try_without_a_result_leaves_the_order() -> None:
    host = FakeHost(script=SLOW_TO_START, facts=TRIED, tries_fail=True)
    found = explained(host, seconds=120.0)
    assert host.tried
    assert not any("short trials" in why for why in found.left_out.values())


def test_a_winner_is_measured_again_before_more_changes_are_tried() -> None:
    unchanged = [(8.0, steps(2, 0.0)), (44.0, steps(9, 5.0)), (44.1, 9)]
    facts = {"optimizer": "SGD", "fused": False}
    wins = {name: Behaviour(0.5) for name in ("fused", "bf16", "threads=1", "no-sync")}
    host = FakeHost(script=unchanged, facts=facts, changes=wins)
    explained(host, seconds=90.0)
    tried = [change for changes in host.rounds for change in changes if change]
    assert len(tried) > len(set(tried))


def test_no_round_begins_that_would_not_fit() -> None:
    host = FakeHost(changes={"fused": Behaviour(0.5)}, round_seconds=17.0)
    found = explained(host, "fused", seconds=60.0)
    assert len(host.rounds) == 3
    assert [each.fresh for each in found.findings] == [True]


@pytest.mark.parametrize("round_seconds", [1.0, 9.0, 25.0, 59.0, 1000.0])
def test_everything_ends_at_the_limit(round_seconds: float) -> None:
    host = FakeHost(changes={"fused": Behaviour(0.5)}, round_seconds=round_seconds)
    explained(host, "fused", "bf16", seconds=60.0)
    assert host.time <= 60.0
    assert all(limit.seconds <= 60.0 for limit in host.limits)


def test_a_round_without_results_at_the_limit_is_no_fault_of_a_change() -> None:
    found = explained(FakeHost(round_seconds=1000.0), "fused")
    assert found.findings == ()
    assert found.left_out == {"fused": "not enough time; use a larger --seconds"}


def test_a_single_fresh_round_confirms_nothing() -> None:
    host = FakeHost(changes={"fused": Behaviour(0.5)}, round_seconds=25.0)
    found = explained(host, "fused", seconds=60.0)
    assert len(host.rounds) == 2
    assert [each.fresh for each in found.findings] == [False]


@pytest.mark.parametrize(
    ("printed", "named"),
    [
        (
            "starting\npython: can't open file 'train.py': [Errno 2] No such file",
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
    ids=["the last line", "the error before advice"],
)
def test_a_failed_script_is_refused_with_its_error(printed: str, named: str) -> None:
    host = FakeHost(outcome=Outcome("failed", "exit code 2", stderr_tail=printed))
    with pytest.raises(ExplanationFailed) as error:
        explained(host, "fused")
    assert error.value.found == f"exit code 2: {named}"


def waiting(sync_seconds: float, **changes: Behaviour) -> FakeHost:
    """A script that spends half of its time in line 7, part of it waiting for results."""
    return FakeHost(
        seen=replace(SEEN, sync_seconds=sync_seconds, syncs={"train.py:7 .item()": 10_000}),
        facts={"own": {"train.py:7": 0.5}, "samples": 100},
        changes=dict(changes),
    )


@pytest.mark.parametrize(
    ("sync_seconds", "change"), [(0.5, "no-sync"), (0.001, "line")], ids=["reads", "other code"]
)
def test_a_slow_statement_is_named_by_what_takes_its_time(sync_seconds: float, change: str) -> None:
    found = explained(waiting(sync_seconds), "no-sync", "line")
    sampled = {each.change: each.place for each in found.findings if each.proof == SAMPLED}
    assert sampled == {change: "train.py:7"}


def test_a_slow_statement_is_named_if_its_experiment_failed() -> None:
    host = waiting(0.5)
    host.changes["no-sync"] = Behaviour(proof="")
    found = explained(host, "no-sync", "line")
    assert [each.change for each in found.findings] == ["line"]
    assert found.left_out == {"no-sync": "no evidence that it took effect"}


ALL_READS = ("train.py:3", "train.py:8", "train.py:9", "train.py:20")


@pytest.mark.parametrize(
    ("facts", "stale", "place"),
    [
        (
            {
                "loading": ["train.py:3"],
                "lines": {
                    "train.py:3": 0.4,
                    "train.py:20": 0.3,
                    "train.py:9": 0.2,
                    "train.py:8": 0.1,
                },
            },
            ALL_READS,
            "train.py:9",
        ),
        ({}, ALL_READS, "train.py:3"),
        ({}, ("train.py:20", "train.py:8"), "train.py:8"),
    ],
    ids=[
        "the slowest outside of the loader",
        "the most frequent without samples",
        "only what the script does not compute with",
    ],
)
def test_the_line_that_waits_longest_is_named(
    facts: dict[str, Any], stale: tuple[str, ...], place: str
) -> None:
    reads = {
        "train.py:3 int()": 6400,
        "train.py:8 .item()": 200,
        "train.py:9 .tolist()": 100,
        "train.py:20 .item()": 9,
    }
    changes = {"no-sync": Behaviour(proof=OLD_VALUES_AT + "; ".join(stale))}
    host = FakeHost(seen=replace(SEEN, syncs=reads), facts=facts, changes=changes)
    found = explained(host, "no-sync")
    assert [each.place for each in found.findings] == [place]


def growing(steps: int = 1000) -> tuple[tuple[float, ...], ...]:
    """Return the times of steps that take longer and longer."""
    return tuple((float(step), 0.01 + step * 1e-5, 32.0) for step in range(1, steps, 10))


def test_a_growth_is_named_with_its_line() -> None:
    facts = {"early": {"train.py:1": 1.0}, "late": {"train.py:1": 0.5, "train.py:9": 0.5}}
    seen = replace(SEEN, step_times=growing())
    found = explained(FakeHost(seen=seen, facts=facts), "fused")
    assert found.grows is not None
    assert found.grows.each == pytest.approx(1e-5)
    assert found.grows_at == "train.py:9"


def test_steps_that_do_not_grow_have_no_line() -> None:
    facts = {"early": {"train.py:1": 1.0}, "late": {"train.py:9": 1.0}}
    found = explained(FakeHost(seen=SEEN, facts=facts), "fused")
    assert (found.grows, found.grows_at) == (None, None)


STALE = OLD_VALUES_AT + "train.py:8"


def reading(seconds: float, sync_seconds: float | None) -> OwnScript:
    """Explain a script whose ten steps take this long without its reads, instead of a second."""
    seen = replace(SEEN, syncs={"train.py:8 .item()": 100}, sync_seconds=sync_seconds)
    host = FakeHost(seen=seen, changes={"no-sync": Behaviour(seconds=seconds, proof=STALE)})
    return explained(host, "no-sync")


def test_not_reading_may_gain_what_reading_takes() -> None:
    (finding,) = reading(0.8, 0.35).findings
    assert finding.speedup.value == pytest.approx(1.25, rel=0.01)
    assert finding.speedup.high is not None
    assert finding.speedup.high <= 1 / (1 - 1.25 * 0.35 / SEEN.seconds)


@pytest.mark.parametrize("sync_seconds", [0.2, None])
def test_steps_that_get_shorter_for_another_reason_say_nothing(sync_seconds: float | None) -> None:
    """Such as episodes of an agent that end early."""
    found = reading(0.25, sync_seconds)
    assert not found.findings
    assert found.left_out == {"no-sync": "steps got shorter by more than reading takes"}


@pytest.mark.parametrize(("seconds", "named"), [(1.0, False), (0.8, True)])
def test_where_only_some_reads_were_left_out_they_alone_are_named(
    seconds: float, named: bool
) -> None:
    """Those that were kept may be what takes the time."""
    why = "the script computes with what train.py:3 reads"
    seen = replace(
        SEEN, syncs={"train.py:8 .item()": 100}, sync_seconds=0.5, failed={"no-sync": why}
    )
    host = FakeHost(seen=seen, changes={"no-sync": Behaviour(seconds=seconds, proof=STALE)})
    found = explained(host, "no-sync")
    assert [each.place for each in found.findings] == ["train.py:8"] * named
    assert ("no-sync" in found.left_out) is not named
    assert named or found.left_out["no-sync"].startswith(why)


TEN_CHANGES = (
    "same-batch",
    "no-evaluation",
    "no-saves",
    "no-sync",
    "fp32",
    "fused",
    "no-grad",
    "bf16",
    "foreach",
    "channels-last",
)


@pytest.mark.parametrize(
    ("used", "parties"),
    [
        ([[1, 1], [3, 1], [11, 1]], 2),
        ([[11, 1], [1, 1], [11, 1]], 3),
        ([[1, 1], [61, 1], [61, 1]], 10),
        ([[1, 51], [13, 61], [13, 61]], 10),
        ([[1, 1], [1, 1]], 10),
        ([[None, None]], 10),
        (None, 10),
    ],
    ids=[
        "fits six times",
        "after another",
        "takes all",
        "the fuller GPU decides",
        "did not grow",
        "not read",
        "unknown",
    ],
)
def test_as_many_changes_run_together_as_fit_on_the_gpu(
    used: list[list[int | None]] | None, parties: int
) -> None:
    host = FakeHost(seen=replace(SEEN, device="cuda:0"), gpu_rows=used)
    explained(host, *TEN_CHANGES, seconds=600.0)
    assert len(host.rounds) == parties
    assert all(sides[0] == UNCHANGED for sides in host.rounds)


@pytest.mark.parametrize(
    ("device", "rounds"),
    [
        (
            "cuda:0",
            [["", "same-batch", "fused"], ["", "batch=8"], ["", "no-accumulation=4"]],
        ),
        ("cpu", [["", "same-batch", "batch=8", "no-accumulation=4", "fused"]]),
    ],
)
def test_larger_batches_run_alone_on_a_gpu(device: str, rounds: list[list[str]]) -> None:
    host = FakeHost(
        seen=replace(SEEN, device=device), facts={"accumulates": 4}, gpu_rows=[[1, 1], [3, 1]]
    )
    explained(host, "same-batch", "batch", "no-accumulation", "fused")
    assert host.rounds == rounds


def test_unknown_changes_are_refused() -> None:
    own_script.require_changes(["batch=4", "line"])
    for name in ("bf61", "batch="):
        with pytest.raises(UnknownName, match=name):
            own_script.require_changes([name])


def test_what_wins_is_measured_again_and_combined() -> None:
    host = FakeHost(
        changes={
            "fused": Behaviour(0.5),
            "bf16": Behaviour(0.8),
            "fused+bf16": Behaviour(0.4),
        }
    )
    found = explained(host, "fused", "bf16", "foreach")
    assert host.rounds[0] == ["", "fused", "bf16", "foreach"]
    assert host.rounds[1:3] == [["", "fused", "bf16", "fused+bf16"]] * 2
    assert {each.change: each.fresh for each in found.findings} == {
        "fused": True,
        "bf16": True,
        "foreach": False,
    }
    assert [each.change for each in found.stack] == ["fused", "fused+bf16"]
    assert found.stack[-1].speedup.value == pytest.approx(2.5, rel=0.02)


def test_what_is_left_out_for_a_diagnosis_is_stacked_too() -> None:
    """One bottleneck hides the next; a bound of the loader leaves no room for worker processes."""
    host = FakeHost(
        facts={"workers": 0},
        changes={
            "same-batch": Behaviour(0.5),
            "workers=2": Behaviour(0.9),
            "fused": Behaviour(0.8),
            "same-batch+fused": Behaviour(0.2),
        },
    )
    found = explained(host, "same-batch", "workers=2", "fused")
    assert [each.change for each in found.stack] == ["same-batch", "same-batch+fused"]
    whole = found.stack[-1]
    assert (whole.kind, whole.learning) == ("diagnosis", "unseen")
    assert whole.speedup.value == pytest.approx(5.0, rel=0.02)


def test_where_time_is_short_changes_are_only_stacked() -> None:
    host = FakeHost(
        changes={
            "fused": Behaviour(0.5),
            "bf16": Behaviour(0.8),
            "fused+bf16": Behaviour(0.4),
        }
    )
    found = explained(host, "fused", "bf16", "foreach", seconds=16.0)
    assert host.rounds[1:3] == [["", "fused", "fused+bf16"]] * 2
    assert found.stack[-1].change == "fused+bf16"
    assert not next(each.fresh for each in found.findings if each.change == "bf16")


def test_what_adds_nothing_is_not_stacked() -> None:
    host = FakeHost(
        changes={
            "fused": Behaviour(0.5),
            "bf16": Behaviour(0.8),
            "fused+bf16": Behaviour(0.495),
        }
    )
    found = explained(host, "fused", "bf16", "foreach")
    assert found.stack == ()
    assert {each.change for each in found.findings if each.fresh and each.wins} == {
        "fused",
        "bf16",
    }


def test_a_cause_that_was_only_sampled_is_not_stacked() -> None:
    facts = {
        "workers": 0,
        "samples": 1000,
        "known": {"pandas": 0.6},
        "known_at": {"pandas": "train.py:9"},
        "parts": {"loader": 0.7},
    }
    host = FakeHost(
        facts=facts, changes={"same-batch": Behaviour(0.5), "same-batch+batch=8": Behaviour(0.4)}
    )
    found = explained(host, seconds=200.0)
    assert "pandas" in {each.change for each in found.findings}
    assert not any("pandas" in each.change for each in found.stack)


@pytest.mark.parametrize(("unsteady", "stacked"), [(0.0, 2), (0.3, 0)])
def test_what_may_add_something_is_not_stacked(unsteady: float, stacked: int) -> None:
    """It certainly wins against the unchanged script, but not against the stack without it."""
    host = FakeHost(
        changes={
            "fused": Behaviour(0.5),
            "bf16": Behaviour(0.8),
            "fused+bf16": Behaviour(0.45, unsteady=unsteady),
        }
    )
    assert len(explained(host, "fused", "bf16").stack) == stacked


def test_what_ctrl_c_leaves_of_the_screening_counts() -> None:
    host = FakeHost(
        changes={"fused": Behaviour(0.5), "bf16": Behaviour(proof=""), UNCHANGED: Behaviour()},
        memory=5 << 20,  # for three processes: the unchanged script and two changes
        interrupted_in=1,
    )
    found = explained(host, "fused", "foreach", "bf16")
    assert host.rounds == [["", "fused", "bf16"]], "nothing follows"
    assert found.interrupted
    assert [each.change for each in found.findings if each.wins] == ["fused"]
    assert found.left_out == {"bf16": "interrupted", "foreach": "interrupted"}


def test_ctrl_c_before_any_finding_shows_the_unchanged_script() -> None:
    host = FakeHost(
        changes={"bf16": Behaviour(proof="")},
        facts={"lines": {"train.py:7": 0.5}},
        interrupted_in=1,
    )
    found = explained(host, "bf16")
    assert found.interrupted
    assert found.findings == ()
    assert found.lines == {"train.py:7": 0.5}


def test_a_change_without_evidence_says_so_after_a_later_ctrl_c() -> None:
    host = FakeHost(
        changes={"fused": Behaviour(0.5), "bf16": Behaviour(proof="")}, interrupted_in=2
    )
    found = explained(host, "fused", "bf16")
    assert found.interrupted
    assert found.left_out == {"bf16": "no evidence that it took effect"}


@pytest.mark.parametrize("alone", [UNCHANGED, "fused"], ids=["unchanged", "changed"])
def test_what_ran_alone_for_lack_of_memory_is_not_compared(alone: str) -> None:
    found = explained(FakeHost(changes={"fused": Behaviour(0.5)}, alone={1: alone}), "fused")
    assert found.findings == ()
    assert found.left_out == {"fused": "it ended, or memory ran out, before it could be compared"}


@pytest.mark.parametrize("alone", [UNCHANGED, "fused"], ids=["unchanged", "changed"])
def test_a_round_in_which_one_ran_alone_is_ignored(alone: str) -> None:
    found = explained(FakeHost(changes={"fused": Behaviour(0.5)}, alone={2: alone}), "fused")
    assert [each.fresh for each in found.findings] == [True]
    assert speedups(found)["fused"] == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize(
    ("device", "peaks", "expected"),
    [("cuda:0", (100, 250), 2.5), ("cuda:0", (100, None), None), ("cpu", (None, None), 3.0)],
    ids=["the device's", "unknown", "the host's"],
)
def test_memory_is_that_of_the_device_with_the_weights(
    device: str, peaks: tuple[int | None, int | None], expected: float
) -> None:
    changes = {
        UNCHANGED: Behaviour(device_bytes=peaks[0], host_bytes=1000),
        "fused": Behaviour(0.5, device_bytes=peaks[1], host_bytes=3000),
    }
    found = explained(FakeHost(seen=replace(SEEN, device=device), changes=changes), "fused")
    assert [each.memory for each in found.findings] == [expected]


def test_a_fresh_round_cut_short_by_ctrl_c_replaces_nothing() -> None:
    host = FakeHost(changes={"fused": Behaviour(0.5, later=0.9)}, interrupted_in=2)
    found = explained(host, "fused")
    assert found.interrupted
    assert [each.fresh for each in found.findings] == [False]
    assert speedups(found)["fused"] == pytest.approx(2, rel=0.01)
    assert found.left_out == {}


def patched(folder: Path, host: FakeHost, text: str) -> OwnScript:
    """Explain a script whose fastest change stacks two, and ask for a patch."""

    def ignore(_what: str, _share: float) -> None:
        """Show no progress."""

    (folder / "train.py").write_text(text)
    command = Command("train.py", ("python", "train.py"), folder)
    only = ("threads=2", "bf16")
    return own_script.explain(command, Settings(), ignore, 60.0, only, host, patches=True)


STACKED = {
    "threads=2": Behaviour(0.5),
    "bf16": Behaviour(0.7),
    "threads=2+bf16": Behaviour(0.3),
}


def test_a_patch_is_measured_instead_of_the_experiments(tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    text = "import torch\nloss = f(net(x))\n"
    seen = replace(SEEN, places={"forward": "train.py:2"})
    host = FakeHost(seen=seen, changes=STACKED)
    found = patched(tmp_path, host, text)
    assert found.stack[-1].change == "threads=2+bf16"
    assert found.stack[-1].proof == "it is written in the source; it is written in the source"
    added = [line for line in found.patch.splitlines() if line.startswith("+")]
    assert added[1:] == [
        "+torch.set_num_threads(2)",
        '+with torch.autocast("cpu", dtype=torch.bfloat16):',
        "+    loss = f(net(x))",
    ]
    sides = len(host.rounds[0])
    assert not any(host.files[:sides]), "the screening tries experiments"
    first = dict(zip(host.rounds[1], host.files[sides:], strict=False))
    assert "set_num_threads" in first["threads=2"]["train.py"]
    assert "autocast" in first["threads=2+bf16"]["train.py"]
    assert (tmp_path / "train.py").read_text() == text


def test_what_can_not_be_written_is_not_in_the_patch(tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    host = FakeHost(changes=STACKED)
    found = patched(tmp_path, host, "import torch as t\nloss = f(net(x))\n")
    assert found.patch == ""
    assert set(found.unwritten) == {"threads=2", "bf16"}
    assert not any(host.files)
