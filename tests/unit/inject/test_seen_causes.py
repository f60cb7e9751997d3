"""Causes of slow steps are seen in scripts, with the line that is to change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.observed import observed
from trainmark.analysis.causes import Evidence, Found, find
from trainmark.record.observed import Observed

SCRIPTS = Path(__file__).parent / "scripts" / "slow"


def report_of(tmp_path: Path, name: str, change: str, *words: str) -> dict[str, Any]:
    """Run a script with a change; returns what was observed last."""
    folder = tmp_path / change
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMARK_CHANGES", change)
        run = observed(SCRIPTS / f"{name}.py", *words, folder=folder)
    assert run.code == 0, run.err
    printed = [float(line) for line in run.out.splitlines()]
    return {**run.reports[-1], "printed": printed}


def causes(report: dict[str, Any]) -> dict[str, Found]:
    """Return the causes in a script that trains on a machine with one core."""
    known = {key: value for key, value in report.items() if key in Observed.__dataclass_fields__}
    seen = Observed(**{**known, "injected": ()})
    facts = json.loads(report["changed"]["facts"])
    return {each.name: each for each in find(Evidence(seen, facts, 1, 1))}


def line_of(name: str, text: str) -> str:
    """Return the place of the line of a script that contains something."""
    file = SCRIPTS / f"{name}.py"
    lines = file.read_text("utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if text in line)
    return f"{file}:{number}"


@pytest.mark.parametrize(
    ("name", "cause", "text"),
    [
        ("epochs", "restarted-workers", "in loader"),
        ("sequences", "loop-over-time", "state = cell("),
        ("recomputed", "activation-checkpointing", "checkpoint("),
    ],
)
def test_a_cause_is_seen(tmp_path: Path, name: str, cause: str, text: str) -> None:
    pytest.importorskip("torch")
    found = causes(report_of(tmp_path, name, "facts"))
    assert list(found) == [cause]
    assert found[cause].place == line_of(name, text)
    assert 0.05 < (found[cause].share or 0.0) < 1


@pytest.mark.parametrize(
    ("which", "cause", "proof"),
    [
        ("cProfile", "python-profiler", "Python's profiler stays off"),
        ("torch", "torch-profiler", "PyTorch's profiler stays off"),
    ],
)
def test_a_profiler_that_was_left_on_is_named(
    tmp_path: Path, which: str, cause: str, proof: str
) -> None:
    pytest.importorskip("torch")
    seen = report_of(tmp_path, "profiled", "facts", which)
    found = causes(seen)
    assert list(found) == [cause]
    assert found[cause].place == line_of("profiled", "with PROFILERS")
    cured = report_of(tmp_path, "profiled", f"no-{cause}", which)
    assert cured["changed"] == {f"no-{cause}": proof}
    assert cured["printed"] == seen["printed"]


def test_the_line_that_loads_is_named(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("pandas")
    found = causes(report_of(tmp_path, "rows", "facts"))
    assert found["pandas"].place == line_of("rows", "row.drop")
    # On a busy machine, a few samples may also show how batches are put together.
    assert set(found) <= {"loading-in-process", "pandas", "collation"}
    assert "collation" not in found or found["collation"].share < found["pandas"].share


@pytest.mark.parametrize(
    ("how", "text", "draws"),
    [
        ("random", "sleep(0.01)", True),
        ("module", "sleep(0.009)", False),
    ],
)
def test_the_line_of_processes_that_load_is_named(
    tmp_path: Path, how: str, text: str, *, draws: bool
) -> None:
    pytest.importorskip("torch")
    report = report_of(tmp_path, "workers", "facts", how)
    found = causes(report)
    cause = found["slow-workers"]
    assert cause.place == line_of("workers", text)
    facts = json.loads(report["changed"]["facts"])
    assert facts["known_at"].get("new iterator") != cause.place, "the training's frames"
    assert max(facts["lines"], key=facts["lines"].get) == cause.place
    assert "the loader's 2 processes" in cause.seen
    assert ("not all of it can be done in advance" in cause.cure) is draws


def test_denormal_numbers_are_counted_and_flushed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU can't flush denormal numbers to zero")
    torch.set_flush_denormal(False)
    seen = report_of(tmp_path, "denormal", "facts")
    found = causes(seen)
    assert list(found) == ["denormal-numbers"]
    assert found["denormal-numbers"].seen.startswith("50 % of the weights, gradients")
    cured = report_of(tmp_path, "denormal", "flush-denormal")
    assert cured["changed"] == {"flush-denormal": "denormal numbers are flushed to zero"}
    assert max(cured["printed"]) == 0 < min(seen["printed"])


def test_predictions_of_an_agent_are_a_part_of_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("keras")
    pytest.importorskip("torch")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    seen = report_of(tmp_path, "agent", "facts")
    found = causes(seen)
    assert "predict-in-loop" in found
    assert "is called 2 times in each step" in found["predict-in-loop"].seen
    assert (seen["steps"], seen["evaluations"], seen["no_grad_passes"]) == (26, 0, 56)
    assert 0 < seen["no_grad_seconds"] < seen["seconds"]
    called = report_of(tmp_path, "agent", "direct-call")
    assert called["changed"] == {"direct-call": "the model is called instead of predict()"}
    assert called["losses"] == pytest.approx(seen["printed"], rel=1e-5)


def test_a_function_jitted_in_a_loop_is_named_and_cured(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    seen = report_of(tmp_path, "jax_jits", "facts")
    found = causes(seen)
    assert list(found) == ["jit-in-loop"]
    assert found["jit-in-loop"].place == line_of("jax_jits", "@jax.jit")
    assert (found["jit-in-loop"].share or 0.0) > 0.5
    cured = report_of(tmp_path, "jax_jits", "jit-once")
    place = line_of("jax_jits", "@jax.jit")
    assert cured["changed"] == {"jit-once": f"step at {place} is jitted once"}
    assert (cured["steps"], cured["step_compiles"]) == (40, 0)
    assert cured["printed"] == seen["printed"]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("closure", "step uses other values from outside each time it is created"),
        ("global", "<lambda> uses other values from outside each time it is created"),
        ("options", "<lambda> uses other values from outside each time it is created"),
        ("dictionary", "<lambda> uses values that may have changed each time it is created"),
        ("method", None),
    ],
)
def test_functions_that_differ_are_not_jitted_once(
    tmp_path: Path, what: str, why: str | None
) -> None:
    pytest.importorskip("jax")
    kept = report_of(tmp_path, "jax_jits", "jit-once", what)
    assert kept["changed"] == {}
    assert kept["failed"].get("jit-once") == why
    assert kept["printed"] == report_of(tmp_path, "jax_jits", "facts", what)["printed"]


def test_a_function_that_jax_knows_is_not_compiled_again(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    assert "jit-in-loop" not in causes(report_of(tmp_path, "jax_jits", "facts", "same"))


def test_what_a_step_returns_is_donated_and_it_learns_the_same(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    seen = report_of(tmp_path, "jax_loop", "facts")
    assert not causes(seen)
    donated = report_of(tmp_path, "jax_loop", "donate")
    assert donated["changed"] == {"donate": "step donates argument 0"}
    assert (donated["steps"], donated["examples_per_step"]) == (60, 16)
    assert donated["printed"] == seen["printed"]


def test_weights_that_the_script_uses_later_can_not_be_donated(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    with pytest.raises(AssertionError, match="Array has been deleted"):
        report_of(tmp_path, "jax_loop", "donate", "keeps")


def test_reads_that_are_only_printed_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    stale = report_of(tmp_path, "jax_loop", "no-sync")
    place = line_of("jax_loop", "print(float(loss))")
    assert stale["changed"] == {"no-sync": f"old values at {place}"}
    # Python may specialise the first call, which is then another one.
    assert len(set(stale["printed"])) <= 2
    assert stale["losses"][-1] < stale["losses"][0], "it trains all the same"
    (tmp_path / "other").mkdir()
    partly = report_of(tmp_path / "other", "jax_loop", "no-sync", "chooses")
    assert "computes with what" in partly["failed"]["no-sync"]
    assert partly["changed"] == {"no-sync": f"old values at {place}"}
