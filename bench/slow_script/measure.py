"""Does `trainmark explain -- python train.py` name what is slow in a script, and does its promise
hold?

    python bench/slow_script/measure.py [--only NAME,...] [--seconds 120] [--minutes 9] [--out
    FILE.jsonl]

For each plant of bench/slow_script/train.py it prints what is named first, what that promises, and
what mending it by hand gives (the named change, or the script without what is planted), measured by
`trainmark measure --vary` in the same minutes. It ends after --minutes; call it again to go on.
`none` is a script without a fault.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPT = str(Path(__file__).with_name("train.py"))
RIGHT = {
    "loader-sleep": {"same-batch", "workers", "prefetch"},
    "decode": {"same-batch", "workers", "prefetch"},
    "item": {"no-sync"},
    "python-optimizer": {"no-optimizer", "torch-optimizer"},
    "many-parameters": {"foreach", "fused"},
    "one-thread": {"threads"},
    "float64": {"fp32"},
    "evaluation": {"no-evaluation"},
    "checkpoint": {"no-saves"},
    "transfer": {"line"},
    "grad-evaluation": {"no-grad"},
    "tiny-batch": {"batch"},
}
"""Changes that name what is planted."""
BY_HAND = ("threads", "workers", "batch", "fused", "foreach", "bf16")
"""Changes that the script can make itself."""


def main() -> None:
    """Try each plant that has no line in the file yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(RIGHT))
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument(
        "--mend",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="measure the mended script",
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    known = (
        [json.loads(line) for line in options.out.read_text().splitlines()]
        if _exists(options.out)
        else []
    )
    for slow in options.only.split(","):
        if slow in {each["slow"] for each in known}:
            continue
        if time.monotonic() > end:
            break
        known.append(_try(slow, options.seconds, mend=options.mend))
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(known[-1]) + "\n")
        print(_line(known[-1]), flush=True)
    judged = [each for each in known if each["slow"] in RIGHT]
    right = [each for each in judged if each["first"].partition("=")[0] in RIGHT[each["slow"]]]
    mended = [each for each in judged if each["mended"]]
    kept = [each for each in mended if abs(each["promised"] / each["mended"] - 1) <= 0.15]
    print(
        f"named first in {len(right)} of {len(judged)}; promise within 15 % of mending in "
        f"{len(kept)} of {len(mended)}"
    )


def _try(slow: str, seconds: float, *, mend: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, SCRIPT, "--slow", slow]
        found = _trainmark(folder, "explain", "--seconds", str(seconds), "--json", "--", *command)
        findings = found["findings"]
        first: dict[str, Any] = (
            findings[0] if findings else {"change": "", "speedup": {"value": 1.0}}
        )
        return {
            "slow": slow,
            "first": first["change"],
            "promised": first["speedup"]["value"],
            "mended": _mended(folder, slow, first["change"], seconds / 2) if mend else None,
            "findings": [
                {name: each[name] for name in ("change", "kind", "speedup", "learning", "place")}
                for each in findings
            ],
        }


def _mended(folder: str, slow: str, first: str, seconds: float) -> float | None:
    """What the named change gives if the script can make it, else the script without the plant.

    Both are interleaved.
    """
    if slow == "none" or not first:
        return None
    if first.partition("=")[0] in BY_HAND:
        vary = f"change=,{first}"
        words = [sys.executable, SCRIPT, "--slow", slow, "--change={change}"]
    else:
        vary = f"how=--slow={slow},--like={slow}"
        words = [sys.executable, SCRIPT, "{how}"]
    out = str(Path(folder) / "records")
    budget = ["--repeats", "2", "--budget", str(seconds)]
    _trainmark(folder, "measure", "--vary", vary, *budget, "--out", out, "--json", "--", *words)
    groups: list[dict[str, Any]] = _trainmark(folder, "compare", out, "--json")["groups"]
    ratio: float = groups[1]["speedup"]["ratio"]
    return ratio


def _trainmark(folder: str, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *words], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"trainmark {' '.join(words)} ended with {done.returncode}")
    return json.loads(done.stdout)


def _line(found: dict[str, Any]) -> str:
    mended = "" if found["mended"] is None else f"; mending it gives {found['mended']:.2f}x"
    return f"{found['slow']}: {found['first'] or 'nothing'} {found['promised']:.2f}x{mended}"


def _exists(path: Path | None) -> bool:
    return path is not None and path.exists()


if __name__ == "__main__":
    main()
