"""Runs a command as a measured one runs in a copy of the user's folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from trainmark import landlock

_PROGRAM = """
import os, sys
from pathlib import Path
from trainmark import landlock
from trainmark.execute.protocol.copies import place_of_copy
from trainmark.execute.worker.confinement import confined_environment, writable_folders
from trainmark.execute.worker.supervisor import CommandRequest, Supervisor
from trainmark.execute.worker.working_copy import link_neighbours, linked
from trainmark.inject import site

scratch = Path(sys.argv[1])
original = Path.cwd()
is_confined = landlock.is_sufficient()
place = place_of_copy(original, scratch)
copy = place.copy
copy.parent.mkdir(parents=True)
if is_confined:
    link_neighbours(original, place)
linked(original, copy, whole=not is_confined)
environment = confined_environment(os.environ, scratch, str(original), place)
environment["PYTHONPATH"] = os.pathsep.join([*site.__path__, environment.get("PYTHONPATH", "")])
writable = writable_folders(environment, scratch, str(original)) if is_confined else None
with Supervisor(environment) as supervisor:
    supervisor.start(CommandRequest(sys.argv[2:], str(copy), writable))
    code = supervisor.receive()["code"]
    supervisor.receive()
sys.exit(code if code >= 0 else 1)
"""


def run_confined(
    words: Sequence[str], folder: Path, scratch: Path, *, by_kernel: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command in a copy of ``folder``, and return what it printed.

    Args:
        words: the command.
        folder: the user's folder.
        scratch: folder that receives the copy; it is made.
        by_kernel: use Landlock where the kernel has it.
    """
    scratch.mkdir()
    environment = {**os.environ, landlock.OFF_VARIABLE: "on" if by_kernel else "off"}
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(scratch), *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
