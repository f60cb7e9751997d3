from __future__ import annotations

import time
from pathlib import Path

import pytest

from trainmark.errors import ProtocolError
from trainmark.execute.parent import probe as probes
from trainmark.execute.parent.probe import THIS, Interpreter, probe
from trainmark.execute.parent.process import ask_all
from trainmark.execute.protocol.worker_commands import ListBackends, Probe


def test_an_import_that_hangs_is_given_up(tmp_path: Path) -> None:
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nexec sleep 300\n")
    hanging.chmod(0o755)
    start = time.monotonic()
    seen = probe(Interpreter("slow", hanging), "torch", timeout=0.5)
    assert seen.can is None
    assert seen.problem == "no answer within 0.5 s: importing it hangs"
    assert time.monotonic() - start < 100


def test_a_probe_reports_a_backend_that_breaks_the_protocol(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask(*_: object, **__: object) -> None:
        raise ProtocolError("the measured process broke the protocol")

    monkeypatch.setattr(probes, "ask", ask)
    assert probe(THIS, "torch").problem == "the measured process broke the protocol"


def test_several_at_once_answer_in_the_order_of_the_questions(tmp_path: Path) -> None:
    """The first process waits for a file of the second."""
    waits = tmp_path / "waits"
    makes = tmp_path / "makes"
    waits.write_text(
        f'#!/bin/sh\nwhile [ ! -e {tmp_path}/there ]; do sleep 0.05; done\nexec {THIS.path} "$@"\n'
    )
    makes.write_text(f'#!/bin/sh\ntouch {tmp_path}/there\nexec {THIS.path} "$@"\n')
    for each in (waits, makes):
        each.chmod(0o755)
    questions = [
        (waits, Probe("numpy")),
        (makes, ListBackends()),
        (THIS.path, Probe("nothing-of-that-name")),
    ]
    found = list(ask_all(questions, at_once=2, timeout=200))
    assert [type(received[0]).__name__ for received, _ in found] == [
        "Capable",
        "BackendsListed",
        "Failed",
    ]
    assert [ending.status for _, ending in found] == ["done", "done", "died"]
