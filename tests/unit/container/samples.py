"""What tests of containers need: code that comes from somewhere, and builders that only say what they were asked."""

from __future__ import annotations

import sys
from pathlib import Path

import trainmark
from trainmark.container.origin import Origin

REVISION = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "sha256:" + "4f" * 32

# Answers as buildah does; what it is told stands in its log, and FAIL in the environment makes a build fail.
_BUILDER = """\
import json, os, pathlib, sys, time
words = sys.argv[1:]
log = pathlib.Path({log!r})
with log.open("a") as file:
    file.write(json.dumps(words) + "\\n")
if {broken!r}:
    sys.exit("Cannot connect: is the daemon running?")
if words[0] == "build":
    print("STEP 1/2: FROM somewhere")
    print("a detail")
    if "FAIL" in os.environ:
        sys.exit("E: no such package: python3")
    if "WAIT" in os.environ:
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        pathlib.Path(os.environ["WAIT"]).write_text(f"{{os.getpid()}} {{child.pid}}")
        time.sleep(600)
elif words[0] == "inspect" and "FromImageDigest" in words[4]:
    print({digest!r})
elif words[0] == "inspect":
    print("abc123", json.dumps({{"layers": [{{"size": 1000}}, {{"size": 234}}]}}))
elif words[:2] == ["image", "inspect"]:
    print(json.dumps(["debian@" + {digest!r}]) if "RepoDigests" in words[3] else "sha256:abc123 1234")
elif words[0] == "from":
    print("trainmark-working-container")
elif words[0] == "run":
    print(json.dumps({{"components": [{{"name": "numpy"}}, {{"name": "torch"}}]}}))
"""


def an_origin(**changed: str | None) -> Origin:
    """The code that runs, from a clone."""
    facts: dict[str, str | None] = {"version": "1.2.3", "revision": REVISION, "source": "https://example.org/t.git"}
    return Origin(Path(trainmark.__file__).parent, **(facts | changed))  # type: ignore[arg-type]


def a_builder(folder: Path, name: str, *, broken: bool = False) -> Path:
    """A program of that name in ``folder``; returns the file with what it is told."""
    folder.mkdir(exist_ok=True)
    log = folder / f"{name}.log"
    program = folder / name
    program.write_text(f"#!{sys.executable}\n" + _BUILDER.format(log=str(log), broken=broken, digest=DIGEST))
    program.chmod(0o755)
    return log
