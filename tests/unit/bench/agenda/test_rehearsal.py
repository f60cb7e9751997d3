"""Every item is rehearsed on the CPU by the code that measures a GPU: killed, and resumed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from gpu import store
from gpu.items import ITEMS, find
from gpu.page.writer import NOT_MEASURED

from tests.conftest import PLUGINS
from tests.slow import slow
from tests.unit.bench.conftest import BENCH
from trainmark.data.locate import Located
from trainmark.record.store import load

FAKE = ("--device", "cuda:0", "--instead", "torch=fake", "--quick")
"""The fake backend has a fake GPU, so both devices are compared."""


@dataclass
class Agenda:
    """``python bench/gpu`` in a folder."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, item: str, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, BENCH / "gpu", item, self.folder, "--quick", *options],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def measure(self, item: str, *options: str, seconds: float = 600) -> tuple[int, str, str]:
        process = self.start(item, *options)
        out, err = process.communicate(timeout=seconds)
        return process.returncode, out, err

    def kill_at_some_moment(self, item: str, *options: str) -> int:
        """Kill the command when it begins a measurement, the first or a later one; return which."""
        process = self.start(item, *options)
        assert process.stderr is not None
        begun = random.randint(1, min(3, len(find(item).measurements())))
        for _ in range(begun):
            line = process.stderr.readline()
            assert line.startswith(f"{item}, "), line
        process.kill()
        process.communicate()
        return begun

    def page(self) -> str:
        return (self.folder / "README.md").read_text()

    def section(self, item: str) -> str:
        return self.page().partition(f"<!-- {item}: ")[2].partition(f"<!-- end of {item} -->")[0]


@pytest.fixture
def agenda(tmp_path: Path, cache_home: Path, drawn: Located) -> Agenda:
    environment = {
        **os.environ,
        "PYTHONPATH": PLUGINS,
        "XDG_CACHE_HOME": str(cache_home),
        "TRAINMARK_FAKE": json.dumps({"step_seconds": 2e-3}),
        "OMP_NUM_THREADS": "1",
    }
    return Agenda(tmp_path / "results", environment)


def without_data(agenda: Agenda) -> Agenda:
    """Hide the real data, so that synthetic digits are used."""
    agenda.environment.pop("TRAINMARK_DATA", None)
    return agenda


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_first_item_is_killed_and_resumed(agenda: Agenda) -> None:
    without_data(agenda)
    begun = agenda.kill_at_some_moment("worth-it", *FAKE)
    before = {
        name: result
        for name, result in store.read(agenda.folder, "worth-it").items()
        if result.complete
    }
    assert len(before) == begun - 1

    code, out, err = agenda.measure("worth-it", *FAKE)
    assert code == 1
    assert (
        out.splitlines()[-1]
        == "missing: worth-it, cifar10-cnn-torch: CIFAR-10 is not in TRAINMARK_DATA"
    )
    assert not any(f"worth-it, {name}: up to" in err for name in before), "it was measured already"
    results = store.read(agenda.folder, "worth-it")
    assert all(results[name] == result for name, result in before.items())
    rows = results["mnist-mlp512-torch"].rows
    assert {(row["style"], row["device"]) for row in rows} == {
        (style, device) for style in ("fast", "idiomatic") for device in ("cpu", "cuda:0")
    }
    assert {row["speedup"]["ratio"] for row in rows if row["device"] == "cpu"} == {1.0}
    assert all(row["speedup"]["ratio"] for row in rows if row["device"] == "cuda:0")
    assert load([agenda.folder / "worth-it" / "mnist-mlp512-torch"]), (
        "trainmark's own records are kept"
    )
    assert "| mnist-mlp512 (synthetic digits) | fake | fast | cuda:0 |" in agenda.section(
        "worth-it"
    )
    for item in ITEMS:
        assert (NOT_MEASURED in agenda.section(item.name)) == (item.name != "worth-it")


@pytest.mark.timeout(600)
def test_it_ends_within_a_limit_that_is_too_short(agenda: Agenda) -> None:
    without_data(agenda)
    code, out, _ = agenda.measure("worth-it", *FAKE, "--limit", "9")
    missing = [line for line in out.splitlines() if line.startswith("missing: ")]
    assert code == 1
    assert any("did not fit into the limit" in line for line in missing)
    assert out.splitlines()[-1] == missing[-1], "what is missing comes last"
    assert "\nMissing: " in agenda.section("worth-it") or NOT_MEASURED in agenda.section("worth-it")


def test_results_of_a_rehearsal_stay_apart(agenda: Agenda) -> None:
    store.write(
        agenda.folder, "worth-it", store.Result("x", True, [], 1.0, {"device": "cuda:1"}, [])
    )
    code, _, err = agenda.measure("worth-it", *FAKE)
    assert code == 1
    assert "Name another folder" in err


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("item", [slow(item.name) for item in ITEMS])
def test_an_item_is_rehearsed_on_the_cpu(item: str, agenda: Agenda) -> None:
    if not agenda.environment.get("TRAINMARK_DATA"):
        pytest.skip("TRAINMARK_DATA names no folder with the real data")
    on_cpu = ("--device", "cpu")
    agenda.kill_at_some_moment(item, *on_cpu)
    code, out, err = agenda.measure(item, *on_cpu, seconds=find(item).limit + 60)
    assert "Traceback" not in err
    missing = [line for line in out.splitlines() if line.startswith("missing: ")]
    assert code == (1 if missing else 0)
    assert out.splitlines()[-1] == (missing[-1] if missing else "Nothing is missing.")
    assert NOT_MEASURED not in agenda.section(item)
    assert "| ---" in agenda.section(item)
    assert "the figures mean nothing" in agenda.section(item)
