from __future__ import annotations

import time
from pathlib import Path

import pytest

from trainmark.errors import ProtocolError
from trainmark.execute.parent import probe as probes
from trainmark.execute.parent.probe import THIS, Interpreter, probe


def test_an_import_that_hangs_is_given_up(tmp_path: Path) -> None:
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nexec sleep 300\n")
    hanging.chmod(0o755)
    start = time.monotonic()
    seen = probe(Interpreter("slow", hanging), "torch", timeout=0.5)
    assert seen.can is None
    assert seen.problem == "no answer within 0.5 s: importing it hangs"
    assert time.monotonic() - start < 10


def test_a_backend_that_breaks_the_protocol_is_a_problem_of_that_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object, **__: object) -> None:
        raise ProtocolError("the measured process broke the protocol")

    monkeypatch.setattr(probes, "ask", ask)
    assert probe(THIS, "torch").problem == "the measured process broke the protocol"
