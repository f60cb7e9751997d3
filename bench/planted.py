"""Are planted causes found, with the time that was planted?

    python bench/planted.py [--only WORDS|WORDS] [--seconds 60] [--out FILE.json]

It runs mnist-mlp128 (mnist-mlp512 for threads) on PyTorch, each time with one part made slow.
`trainmark explain` must name it as the largest cause, with a share within 15 % of the planted one,
and an interval that contains the planted share. `trainmark run` measures what is planted: the share
of a step by which it is longer with it than without, in three pairs of runs before and three after
the explanation, with the 95 % interval of those six. If the step had such a cause before, the share
found in the unchanged step counts, too. For the batch, the promise is judged: what a batch ten
times as large saves. It needs TRAINMARK_DATA with MNIST and a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.analysis.statistics import paired_difference
from trainmark.record.store import load
from trainmark.workload import catalog

BACKENDS = '''
"""PyTorch with one thing made slow in each."""

import time
import torch
from trainmark.backends.torch.backend import TorchBackend
from trainmark.backends.torch.fast import TorchFastTrainer
from trainmark.backends.torch import optimizers

class Loader(TorchFastTrainer):
    def _batch(self, size, indices):
        if "input" not in self._without:
            time.sleep(0.003)
        return super()._batch(size, indices)


class Copy(TorchFastTrainer):
    def _batch(self, size, indices):
        if "copy" not in self._without:
            self._images.clone()
        return super()._batch(size, indices)


class Fetch(TorchFastTrainer):
    def _learn(self, x, y, row):
        super()._learn(x, y, row)
        if "fetch" not in self._without:
            for _ in range(1000):
                row[0].item()


class Rows(torch.optim.Optimizer):
    def __init__(self, inner, network):
        self.inner = inner
        super().__init__(network.parameters(), {})
    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for weight in group["params"]:
                    for row in range(len(weight)):
                        weight[row].add_(weight.grad[row], alpha=-0.01)


class Optimizer(TorchFastTrainer):
    def __init__(self, workload, model, data, options):
        super().__init__(workload, model, data, options)
        self._optimizer = Rows(self._optimizer, self._network)
    def load(self, weights):
        kept, self._optimizer = self._optimizer, self._optimizer.inner
        super().load(weights)
        self._optimizer = kept


class Planted(TorchBackend):
    trainer_class, part = TorchFastTrainer, None
    def parts(self, options):
        return super().parts(options) | ({self.part} if self.part else set())
    def trainer(self, workload, model, data, options):
        return self.trainer_class(workload, model, data, options)


class SlowLoader(Planted): trainer_class, part = Loader, "input"
class WholeCopy(Planted): trainer_class, part = Copy, "copy"
class EagerFetch(Planted): trainer_class, part = Fetch, "fetch"
class LoopedOptimizer(Planted): trainer_class, part = Optimizer, "optimizer"
'''
ENTRY_POINTS = """[trainmark.backends]
slowloader = planted:SlowLoader
wholecopy = planted:WholeCopy
eagerfetch = planted:EagerFetch
loopedoptimizer = planted:LoopedOptimizer
"""
NEAR = 0.15
HALF = 3


@dataclass(frozen=True)
class Case:
    """A planted cause.

    Args:
        backend: which has it.
        cause: that must be named.
        options: of ``explain``.
        batch: of the workload; None leaves it.
        workload: another one than the others'; a thread more is of no great use to a small network.
    """

    backend: str
    cause: str
    options: tuple[str, ...] = ()
    batch: int | None = None
    workload: str | None = None


CASES = {
    "a loader that sleeps 3 ms a batch": Case("slowloader", "input"),
    "a copy of the whole data set every step": Case("wholecopy", "copy"),
    "a loss fetched every step (1,000 times)": Case("eagerfetch", "fetch"),
    "an optimiser written as a Python loop": Case("loopedoptimizer", "optimizer"),
    "a 10 times too small batch": Case("torch", "a batch that is too small", (), 10),
    "one thread instead of two": Case(
        "torch", "threads", ("--threads", "1"), workload="mnist-mlp512"
    ),
}


def explain(
    workload: str, *options: str, seconds: float, environment: dict[str, str]
) -> dict[str, Any]:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "trainmark",
            "explain",
            workload,
            "--style",
            "fast",
            "--device",
            "cpu",
            "--json",
            "--seconds",
            str(seconds),
            *options,
        ],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only")
    parser.add_argument("--workload", default="mnist-mlp128")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "planted.py").write_text(BACKENDS)
        installed = folder / "planted-1.0.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text(ENTRY_POINTS)
        path = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": path}
        plain = explain(
            options.workload, "--backend", "torch", seconds=options.seconds, environment=environment
        )
        results = {"nothing": plain}
        for name, case in CASES.items():
            if options.only and not any(words in name for words in options.only.split("|")):
                continue
            workload = case.workload or options.workload
            results[name] = found = explain_case(
                case, workload, options.seconds, folder, environment
            )
            print(f"{name}: {judged(case, found, plain)}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))


def explain_case(
    case: Case, workload: str, seconds: float, folder: Path, environment: dict[str, str]
) -> dict[str, Any]:
    """Return the answer, with the seconds of a step in `trainmark run` before and after: planted,
    and without."""
    changed = workload
    if case.batch is not None:
        text = (
            Path(catalog.__file__)
            .with_name(f"{workload}.toml")
            .read_text()
            .partition("[published")[0]
        )
        changed = str(folder / "small.toml")
        Path(changed).write_text(
            text.replace("size = 100\n", f"size = {case.batch}\n").replace(
                f'"{workload}"', '"small"'
            )
        )

    def pair() -> tuple[float, float]:
        planted, without = (
            run(name, backend, *options, environment=environment)
            for name, backend, options in (
                (changed, case.backend, case.options),
                (workload, "torch", ()),
            )
        )
        return planted, without

    before = [pair() for _ in range(HALF)]
    found = explain(
        changed, "--backend", case.backend, *case.options, seconds=seconds, environment=environment
    )
    after = [pair() for _ in range(HALF)]
    return found | {"pairs": [*before, *after]}


def run(workload: str, backend: str, *options: str, environment: dict[str, str]) -> float:
    """Return the seconds of a step of the second epoch."""
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "trainmark",
                "run",
                workload,
                "--backend",
                backend,
                "--style",
                "fast",
                "--device",
                "cpu",
                "--repeats",
                "1",
                "--epochs",
                "2",
                "--out",
                out,
                *options,
            ],
            check=True,
            capture_output=True,
            env=environment,
        )
        (record,) = load([Path(out)])
    last = record.epochs[-1]
    assert last.steps is not None, "only a measured command does not count its steps"
    return last.seconds / last.steps


def judged(case: Case, found: dict[str, Any], plain: dict[str, Any]) -> str:
    """Compare what was found with what was planted, as shares of a step.

    Both are estimates, so both have an interval.
    """
    certain = [
        each
        for each in found["shares"]
        if not each["on_top"] and (each["low"] is None or each["low"] > 0)
    ]
    largest = max(certain, key=lambda each: each["share"], default={"cause": "none"})
    if case.batch is not None:
        advice = next(each for each in found["advice"] if each["batch"])
        low, value, high = (1 - 1 / advice[key] for key in ("low", "promise", "high"))
        kept = case.batch / plain["batch"]
    else:
        share = next(each for each in found["shares"] if each["cause"] == case.cause)
        low = share["low"]
        value = share["share"]
        high = share["high"]
        kept = 1 - next(
            (each["share"] for each in plain["shares"] if each["cause"] == case.cause), 0.0
        )
    ratio = paired_difference(
        [math.log(without / planted) for planted, without in found["pairs"]]
    ).exponential()
    most, truth, least = (1 - kept * each for each in (ratio.low, ratio.value, ratio.high))
    if case.batch is not None and case.cause in found["sentences"][0].replace(
        "the batch is", "a batch that is"
    ):
        largest = {"cause": case.cause}
    named = "as planted" if largest["cause"] == case.cause else "NOT AS PLANTED"
    near = "near" if abs(value / truth - 1) <= NEAR else "NOT NEAR"
    holds = (
        "holds it"
        if low <= truth <= high
        else "overlaps"
        if low <= most and least <= high
        else "MISSES IT"
    )
    return (
        f"largest cause {largest['cause']} ({named}); share {_span(low, value, high)}, "
        f"planted {_span(least, truth, most)}: {100 * (value / truth - 1):+.1f} % ({near}; the "
        f"interval {holds}); "
        f"a step of {1e3 * found['step_seconds']:.3f} ms, unexplained "
        f"{100 * found['unexplained']:.1f} %"
    )


def _span(low: float, value: float, high: float) -> str:
    return f"{100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


if __name__ == "__main__":
    main()
