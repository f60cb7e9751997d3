"""``python -m fuzz TARGET --seconds N``: fuzz one target, or all targets, two at a time.

Each target runs in a separate process with libFuzzer's limits of time and memory. An input that
ends it is saved in ``fuzz-findings/``, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).parent
TARGETS = ("idx", "cifar", "compressed", "weights", "toml", "record", "wire", "hook")
FINDINGS = Path("fuzz-findings")
MOST_BYTES = {"record": 16_384, "compressed": 16_384}
DEFAULT_MOST_BYTES = 4_096
SECONDS_AN_INPUT = 10
RESIDENT_MIB = 1_024
ADDRESS_SPACE_MIB = 4_096
"""Limits of resident memory and of address space: a larger allocation fails, which is a finding."""
AT_ONCE = 2
_LINES_OF_A_FINDING = 40


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; all if none is given"
    )
    parser.add_argument("--seconds", type=int, default=60, help="seconds per target")
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed, to repeat a run; 0 for a random one"
    )
    parser.add_argument(
        "--keep", type=Path, help="folder for inputs that reached new code, by target"
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := set(asked.targets) - set(TARGETS):
        parser.error(f"unknown target {', '.join(sorted(unknown))}: expected {', '.join(TARGETS)}")
    if asked.inside:
        fuzz_here(asked.targets[0], asked.seconds, asked.seed, asked.keep)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        codes = pool.map(
            lambda name: fuzz(name, asked.seconds, asked.seed, asked.keep), asked.targets or TARGETS
        )
        return int(any(list(codes)))


def fuzz(name: str, seconds: int, seed: int, keep: Path | None) -> int:
    """Fuzz a target in a separate process, print one line about it, and return its exit code."""
    with tempfile.TemporaryDirectory(prefix="trainmark-fuzz-") as temporary:
        found = keep / name if keep else Path(temporary)
        found.mkdir(parents=True, exist_ok=True)
        FINDINGS.mkdir(exist_ok=True)
        options = [
            "--inside",
            "--seconds",
            str(seconds),
            "--seed",
            str(seed),
            "--keep",
            str(found),
            name,
        ]
        ran = subprocess.run(
            [sys.executable, "-m", "fuzz", *options],
            env={**os.environ, "TMPDIR": temporary},
            capture_output=True,
            text=True,
            errors="replace",
        )
    said = ran.stderr + ran.stdout
    print(f"{name:>10}: {_facts(said)}{'' if ran.returncode == 0 else ' FAILED'}", flush=True)
    if ran.returncode:
        told = [line for line in said.splitlines() if not line.startswith("#")]
        print("\n".join(told[-_LINES_OF_A_FINDING:]), flush=True)
    return ran.returncode


def fuzz_here(name: str, seconds: int, seed: int, found: Path) -> None:
    """Fuzz a target in this process; never returns."""
    import atheris

    space = ADDRESS_SPACE_MIB << 20
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    with atheris.instrument_imports(include=["trainmark"]):
        target = importlib.import_module(f"fuzz.targets.{name}")
    corpus = FOLDER / "corpus" / name
    options = [
        "fuzz",
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-max_len={MOST_BYTES.get(name, DEFAULT_MOST_BYTES)}",
        f"-timeout={SECONDS_AN_INPUT}",
        f"-rss_limit_mb={RESIDENT_MIB}",
        f"-artifact_prefix={FINDINGS}/{name}-",
        "-print_final_stats=1",
        str(found),
        str(corpus),
    ]
    atheris.Setup(options, target.one, custom_mutator=getattr(target, "mutated", None))
    atheris.Fuzz()


def _facts(said: str) -> str:
    """Summarise libFuzzer's final output."""
    covered = re.findall(r"cov: (\d+) ft: (\d+)", said)
    numbers = dict(re.findall(r"stat::(\w+):\s+(\d+)", said))
    edges, features = covered[-1] if covered else ("?", "?")
    return (
        f"{numbers.get('number_of_executed_units', '?')} runs, "
        f"{numbers.get('average_exec_per_sec', '?')} per second, "
        f"cov {edges}, ft {features}, slowest {numbers.get('slowest_unit_time_sec', '?')} s, "
        f"peak {numbers.get('peak_rss_mb', '?')} MiB"
    )


if __name__ == "__main__":
    sys.exit(main())
