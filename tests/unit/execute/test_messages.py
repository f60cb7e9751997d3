"""Allowed messages of a measured process, and the end of one that sends others."""

from __future__ import annotations

import json
import math
import os
import random
import resource
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.__main__ import FOLDER
from fuzz.structure import changed
from fuzz.targets import wire as target
from trainmark.backends.base import Options
from trainmark.backends.layout import Layout
from trainmark.data.load import DataFolder
from trainmark.errors import ProtocolError
from trainmark.execute.parent.check import read
from trainmark.execute.parent.process import TAIL_BYTES, Ending, ask
from trainmark.execute.protocol import wire, worker_commands
from trainmark.execute.protocol.answers import StepChecked
from trainmark.execute.protocol.wire import Message
from trainmark.execute.protocol.worker_commands import (
    CheckParity,
    ComputeReference,
    Dissect,
    Examine,
    Train,
    Variant,
    WorkerCommand,
)
from trainmark.execute.worker.reports import Reports
from trainmark.record.checks import Check, StepChecks
from trainmark.workload import catalog
from trainmark.workload.products import Convolution, Product

TRAIN = Train(
    origin=0.0,
    backend="torch",
    workload=catalog.find("mnist-mlp512"),
    dataset=DataFolder("mnist", "/data"),
    options=Options(
        "fast", "cpu", "bf16", 1, without=frozenset({"copy", "input"}), layout=Layout(2)
    ),
    inject_order=False,
    initial_weights=None,
    trainmark=None,
    log_every=None,
    weight_files=(None,),
)
SAID = {
    path.name.removeprefix("seed-"): path.read_bytes()
    for path in (FOLDER / "corpus" / "wire").glob("seed-*")
}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(sorted(SAID)))
def test_a_changed_answer_makes_a_record_or_is_refused(seed: int, which: str) -> None:
    chance = random.Random(seed)
    said = SAID[which]
    lines = said[2:].splitlines()
    at = chance.randrange(len(lines))
    lines[at] = json.dumps(changed(json.loads(lines[at]), chance)).encode()
    target.one(said[:2] + b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("which", sorted(SAID))
def test_every_seed_of_the_fuzzing_is_understood(which: str) -> None:
    said = SAID[which]
    asked = target.ASKED[said[0] % len(target.ASKED)]
    assert which.startswith(asked)
    assert len(target.received(said[2:])) == len(said[2:].splitlines())


@pytest.mark.parametrize(
    "message",
    [
        {"event": "EpochEnded"},
        {"event": "Ready", "seconds": "1", "packages": {}, "steps": 1, "epochs": 1},
        {"event": "Failed"},
        {"event": "Failed", "reason": ["x"]},
        {"event": "Finished", "settings": {"a": 10**30}, "host_peak_bytes": 2**70},
        {"event": "Finished", "settings": {"a": [10**30]}},
        {"event": "CommandStarted", "pid": -1, "start": 0},
        {"event": "CommandStarted", "pid": 2**40, "start": 0},
        {"event": "OfRank", "rank": 0, "message": {"event": "EpochEnded"}},
        {"event": "OfRank", "rank": 0, "message": {"event": "RankBorn", "rank": 0}},
        {"event": "OfRank", "rank": 0, "message": {"rank": 0}},
        {"event": "OfRank", "rank": 0, "message": {"event": ["EpochEnded"]}},
        {"event": "Outputs", "values": [["x"]]},
        {"event": "PeaksMeasured", "peaks": {"matmul_flops_per_second": "fast"}},
        {"event": "Capable"},
        {"event": "RoundTimed", "index": 0, "seconds": 3, "starts": {}},
        {"event": "StepInspected", "step": 1},
        {"event": "Examined", "products": [{"device": 1}]},
        {"event": "ReferenceComputed", "done": -1, "of": 10},
        {"event": "StepChecked", "checks": {"step": 0, "checks": [{"part": "juggling"}]}},
        {"event": "FreeLosses", "losses": ["x"]},
    ],
)
def test_an_answer_without_its_form_is_refused(message: Message) -> None:
    with pytest.raises(ProtocolError, match="broke the protocol with its"):
        read(message)


def test_the_field_and_its_value_are_named() -> None:
    epoch = {
        "event": "EpochEnded",
        "index": 0,
        "start": 1.0,
        "seconds": "long",
        "steps": 1,
        "examples": 1,
    }
    with pytest.raises(
        ProtocolError, match=r"with its 'EpochEnded': .* found seconds = 'long': Expected `float`"
    ):
        read(epoch)
    with pytest.raises(ProtocolError, match=r"found index: expected 0 to .*, found -3"):
        read({**epoch, "seconds": 1.0, "index": -3})


DISSECT = Dissect(
    "torch",
    DataFolder("mnist", "/data"),
    (Variant("whole", TRAIN.workload, TRAIN.options, ("copy",), "copy", 0.5),),
    window=0.1,
    budget=1.0,
    rounds=5,
    products=(Product(1, 2, 3), Product(4, 5, 6, True)),
    convolutions=(Convolution(1, 2, 3, 4, 5, 6, True, 1),),
)


OF_PARITY = (TRAIN.workload, TRAIN.dataset, TRAIN.options, "/tmp/steps.npz")


@pytest.mark.parametrize(
    "request_",
    [
        TRAIN,
        DISSECT,
        Examine("torch"),
        ComputeReference("numpy", *OF_PARITY),
        CheckParity("torch", *OF_PARITY, 10),
    ],
)
def test_a_request_arrives_as_it_was_made(request_: WorkerCommand) -> None:
    assert worker_commands.read(json.loads(wire.encoded(wire.to_message(request_)))) == request_


def test_checks_that_are_not_finite_arrive_as_they_were_sent() -> None:
    checks = Check("loss", "", math.inf, 1e-6), Check("update", "dense1.bias", 1e-7, 1e-6, 1.01)
    for loss in (2.5, -math.inf):
        made = StepChecked(StepChecks(0, checks, 3, loss, 2.5))
        assert read(json.loads(wire.encoded(wire.to_message(made)))) == made


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"event": "Juggle"}, "unknown request"),
        ({"weight_files": [3]}, r"Train is invalid at weight_files\[0\]"),
        ({"batches": 3}, "Train is invalid at batches"),
    ],
)
def test_a_request_of_another_version_is_refused_by_field(
    change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ProtocolError, match=problem):
        worker_commands.read({**json.loads(wire.encoded(wire.to_message(TRAIN))), **change})


def test_an_event_without_a_form_may_be_anything() -> None:
    read({"event": "news of a later version", "x": 1})


@pytest.mark.parametrize("depth", [*range(900, 1_000, 3), 100_000])
def test_lists_as_deep_as_a_reader_goes_are_refused(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    with pytest.raises(ProtocolError):
        target.received(b'{"event": "Finished", "settings": {"a": ' + deep + b"}}\n")
    reports = Reports(0.0)
    list(reports.take(b'{"trainmark": 1, "event": "epoch", "t": ' + deep + b"}\n", 0.0))
    list(reports.take(b'{"trainmark": 1, "event": "epoch", "t": 1, "loss": ' + deep + b"}\n", 0.0))
    assert reports.left_out == 2


def listener(folder: Path, body: str) -> Path:
    """An interpreter of someone's own, which does what ``body`` says with the socket ``line``."""
    path = folder / "python"
    path.write_text(
        f"#!{sys.executable}\nimport os, socket, sys\nline = "
        f"socket.socket(fileno=int(sys.argv[2]))\n{body}\n"
    )
    path.chmod(0o755)
    return path


def asked(python: Path, on_answer: Any = lambda _: None, timeout: float | None = None) -> Ending:
    return ask(python, Examine("torch"), on_answer=on_answer, timeout=timeout)[1]


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("while True: line.sendall(b'x' * 65536)", "without an end"),
        ('while True: line.sendall(b\'{"event": "news"}\\n\' * 4096)', "sends too much"),
        ("line.sendall(b'[' * 200000 + b'\\n'); line.recv(1 << 20)", "broke the protocol"),
        ("line.sendall(b'\\xff\\xfe\\n'); line.recv(1 << 20)", "broke the protocol"),
        ("line.sendall(b'{\"event\": 3}\\n'); line.recv(1 << 20)", "broke the protocol"),
        (
            'line.sendall(b\'{"event": "EpochEnded"}\\n\'); line.recv(1 << 20)',
            "with its 'EpochEnded'",
        ),
        ("line.sendall(b'9' * 5000 + b'\\n'); line.recv(1 << 20)", "broke the protocol"),
    ],
)
def test_a_real_process_that_talks_nonsense_is_ended(
    tmp_path: Path, body: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_MOST_LINE_BYTES", 1 << 20)
    monkeypatch.setattr(wire, "_MOST_BYTES", 4 << 20)
    note = tmp_path / "pid"
    with pytest.raises(ProtocolError, match=problem):
        ask(
            listener(
                tmp_path,
                f"with open({str(note)!r}, 'w') as note: note.write(str(os.getpid()))\n{body}",
            ),
            TRAIN,
        )
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


@pytest.mark.timeout(200)
def test_an_endless_line_takes_no_more_memory_than_a_line_may(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ProtocolError, match="without an end"):
        asked(listener(tmp_path, "line.sendall(b'x' * (100 << 20))"))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 3 * wire._MOST_LINE_BYTES


@pytest.mark.timeout(200)
def test_a_flood_on_stdout_and_stderr_leaves_its_end_alone(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = "for _ in range(1500): os.write(1, b'o' * 65536); os.write(2, b'e' * 65536)"
    ending = asked(listener(tmp_path, f"{flood}\nos.write(2, b'last words')"))
    assert ending.status == "died"
    assert ending.tail.endswith("last words")
    assert len(ending.tail) <= TAIL_BYTES
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 32 << 20


def test_a_tail_starts_with_a_whole_line(tmp_path: Path) -> None:
    """Half of a secret could not be recognised, so it would not be masked."""
    lines = "os.write(1, b'password=' + b'x' * 9000 + b'\\nlast words\\n')"
    assert asked(listener(tmp_path, lines)).tail == "last words\n"
    short = "os.write(1, b'first words\\nlast words')"
    assert asked(listener(tmp_path, short)).tail == "first words\nlast words"


@pytest.mark.timeout(200)
def test_a_worker_that_floods_without_end_is_ended_in_time(tmp_path: Path) -> None:
    ending = asked(listener(tmp_path, "while True: os.write(1, b'x' * 65536)"), timeout=1.0)
    assert ending.status == "timeout"


def test_the_reason_of_a_death_is_that_of_a_failure(tmp_path: Path) -> None:
    said = '{"event": "Noticed", "reason": 3}\\n{"event": "Failed", "reason": "no memory"}\\n'
    assert asked(listener(tmp_path, f"line.sendall(b'{said}')")).reason == "no memory"


def test_the_scratch_folder_is_the_process_s_alone(tmp_path: Path) -> None:
    on_progress = (
        "place = os.environ['TRAINMARK_SCRATCH']; print(place, oct(os.stat(place).st_mode & 0o777))"
    )
    folder, mode = asked(listener(tmp_path, on_progress)).tail.split()
    assert mode == "0o700"
    assert not Path(folder).exists()
