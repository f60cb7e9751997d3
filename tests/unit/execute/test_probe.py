from __future__ import annotations

import time
from pathlib import Path

from trainmark.execute.parent.probe import Interpreter, probe


def test_an_import_that_hangs_is_given_up(tmp_path: Path) -> None:
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nexec sleep 300\n")
    hanging.chmod(0o755)
    start = time.monotonic()
    seen = probe(Interpreter("slow", hanging), "torch", timeout=0.5)
    assert seen.can is None
    assert seen.problem == "no answer within 0.5 s: importing it hangs"
    assert time.monotonic() - start < 10
