"""Known causes of slow steps are found by their evidence, and not without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainmark.analysis.causes import KNOWN, Evidence, find
from trainmark.analysis.experiments import EXPERIMENTS, OF_CAUSES
from trainmark.record.observed import Observed

SEEN = Observed(
    "torch",
    (),
    steps=101,
    seconds=10.0,
    forward_seconds=3.0,
    backward_seconds=6.0,
    threads=2,
    precision="float32",
    device="cpu",
    places={
        "model": "a.py:3",
        "loader": "a.py:5",
        "optimizer": "a.py:6",
        "evaluation": "a.py:9",
        "save": "a.py:9",
    },
)
GPU = replace(SEEN, device="cuda:0")


def switched(name: str, place: str = "a.py:1") -> dict[str, Any]:
    return {"switches": {name: place}}


def called(name: str, times: int, seconds: float, *places: str) -> dict[str, Any]:
    found = {"times": times, "usual": times // 100, "seconds": seconds, "places": places}
    return {"calls": {name: found}}


def known(*names: str, share: float = 0.3) -> dict[str, Any]:
    shares = dict.fromkeys(names, share)
    at = dict.fromkeys(names, "a.py:9")
    return {"known": shares, "known_late": shares, "known_at": at, "samples": 1000}


def sampled(samples: int = 1000, **parts: float) -> dict[str, Any]:
    return {"samples": samples, "parts": parts}


WORKERS = {"workers": 2, "persistent": False}
SLOW_WORKERS = {
    "workers": 2,
    **known("workers"),
    "loading": ["a.py:36"],
    "lines": {"a.py:36": 0.3},
}
FOUND: list[tuple[str, Observed, dict[str, Any]]] = [
    ("anomaly-detection", SEEN, switched("anomaly")),
    ("deterministic-algorithms", SEEN, switched("deterministic")),
    ("torch-profiler", SEEN, switched("profiler")),
    ("python-profiler", SEEN, switched("Python profiler")),
    ("launch-blocking", GPU, switched("blocking")),
    ("run-eagerly", SEEN, switched("run_eagerly")),
    (
        "jit-in-loop",
        replace(SEEN, compile_seconds=5.0, step_compiles=99),
        {"jits": {"a.py:3": 98, "a.py:9": 99}},
    ),
    (
        "compiled-again",
        replace(SEEN, compile_seconds=5.0, step_compiles=3),
        {"jits": {"a.py:3": 2}},
    ),
    ("denormal-numbers", SEEN, {"denormal": 0.2}),
    ("disabled-jit", SEEN, switched("disable_jit")),
    ("debug-nans", SEEN, switched("debug_nans")),
    ("double-precision", replace(SEEN, precision="float64"), {}),
    ("few-threads", replace(SEEN, threads=1), {}),
    ("garbage-collection", SEEN, called("collect", 100, 5.0, "a.py:9")),
    ("empty-cache", SEEN, called("empty_cache", 100, 5.0, "a.py:9")),
    ("predict-in-loop", SEEN, called("predict", 300, 9.0, "a.py:9", "a.py:11")),
    ("activation-checkpointing", SEEN, known("recomputing")),
    ("copies", SEEN, known("copy")),
    ("tensorboard", SEEN, known("TensorBoard")),
    ("wandb", SEEN, known("Weights & Biases")),
    ("logging", SEEN, known("logging")),
    ("progress-bar", SEEN, known("progress bar")),
    ("plots", SEEN, known("plots")),
    ("metrics", SEEN, known("metrics of scikit-learn")),
    ("evaluation", replace(SEEN, evaluations=3), sampled(evaluation=0.3)),
    ("saving", replace(SEEN, saves=3), sampled(saving=0.3)),
    ("recompiling", SEEN, known("compiling")),
    ("loop-over-time", SEEN, called("cell", 6000, 2.5, "a.py:9")),
    ("handwritten-optimizer", SEEN, {"handwritten": True, "optimizer": "Descent"}),
    ("weight-average", SEEN, known("weight average")),
    ("restarted-workers", SEEN, {**WORKERS, **known("new iterator")}),
    ("too-many-workers", SEEN, {"workers": 8}),
    ("pandas", SEEN, known("pandas")),
    ("image-decoding", SEEN, known("images")),
    ("transforms", SEEN, known("transforms")),
    ("hdf5-reads", SEEN, known("HDF5")),
    ("text-parsing", SEEN, known("JSON")),
    ("collation", SEEN, known("collation")),
    ("loading-in-process", SEEN, {"workers": 0, **sampled(loader=0.5)}),
    ("slow-workers", SEEN, SLOW_WORKERS),
]
NOT_FOUND: list[tuple[Observed, dict[str, Any]]] = [
    (SEEN, {}),
    (SEEN, switched("blocking")),
    (SEEN, {"denormal": 0.005}),
    (GPU, {"denormal": 0.2}),
    (GPU, {}),
    (replace(GPU, threads=1), {}),
    (replace(SEEN, threads=None, precision=None), {}),
    (SEEN, called("collect", 2, 5.0, "a.py:9")),
    (SEEN, called("collect", 100, 0.1, "a.py:9")),
    (SEEN, called("predict", 5, 5.0, "a.py:9")),
    (SEEN, called("cell", 300, 5.0, "a.py:9")),
    (SEEN, {**known("compiling"), "known_late": {"compiling": 0.01}}),
    (SEEN, known("pandas", "logging", "recomputing", "new iterator", share=0.01)),
    (SEEN, known("new iterator")),
    (SEEN, {"workers": 2, "persistent": True, **known("new iterator")}),
    (SEEN, {"workers": 2}),
    (replace(SEEN, compile_seconds=0.1, step_compiles=9), {"jits": {"a.py:3": 9}}),
    (replace(SEEN, compile_seconds=5.0, step_compiles=1), {}),
    (SEEN, {"workers": 2, **sampled(loader=0.5)}),
    (SEEN, {"workers": 2, **known("workers")}),
    (SEEN, {"workers": 0, **sampled(loader=0.1)}),
    (SEEN, {"workers": 0, **sampled(19, loader=0.5)}),
    (SEEN, {**known("pandas"), "samples": 19}),
    (replace(SEEN, evaluations=2), sampled(evaluation=0.6)),
    (replace(SEEN, evaluations=3), sampled(evaluation=0.09)),
    (replace(SEEN, evaluations=3), sampled(2, evaluation=0.5)),
    (replace(SEEN, saves=2), sampled(saving=0.6)),
    (SEEN, {"handwritten": False, "optimizer": "SGD"}),
    (replace(SEEN, steps=1, seconds=0.0), called("collect", 100, 5.0, "a.py:9")),
]


def causes(seen: Observed, facts: Mapping[str, Any]) -> list[Any]:
    return find(Evidence(seen, facts, cores=2, physical_cores=2))


@pytest.mark.parametrize(("name", "seen", "facts"), FOUND, ids=[name for name, *_ in FOUND])
def test_a_cause_is_found(name: str, seen: Observed, facts: Mapping[str, Any]) -> None:
    (cause,) = causes(seen, facts)
    assert cause.name == name
    assert set(cause.changes) <= {*EXPERIMENTS, "threads=2", "workers=2"}
    assert cause.place in (None, *(f"a.py:{line}" for line in (1, 3, 5, 6, 9, 36)))


@pytest.mark.parametrize(("seen", "facts"), NOT_FOUND)
def test_nothing_is_found_without_evidence(seen: Observed, facts: Mapping[str, Any]) -> None:
    assert causes(seen, facts) == []


def test_every_cause_is_tried_here_and_documented() -> None:
    grow = {"growing-graph", "kept-graphs", "growing-tensor", "growing-list"}
    assert {name for name, *_ in FOUND} | grow == {each.name for each in KNOWN}
    assert all(each.source.startswith("https://") for each in KNOWN)
    assert all(not each.cure.endswith(".") for each in KNOWN)
    cured = [change for each in KNOWN for change in each.changes]
    assert set(OF_CAUSES) <= {*cured}, "an experiment that no cause asks for is never tried"


def test_switches_come_first_then_the_largest_share() -> None:
    facts = {**switched("anomaly"), **known("images"), **called("collect", 100, 5.0, "a.py:9")}
    found = [(each.name, each.share) for each in causes(SEEN, facts)]
    assert found == [
        ("anomaly-detection", None),
        ("garbage-collection", 0.5),
        ("image-decoding", 0.3),
    ]


def test_a_loop_over_time_takes_its_backward_pass_along() -> None:
    (cause,) = causes(SEEN, called("cell", 6000, 2.5, "a.py:9"))
    assert cause.share == pytest.approx(0.75), "2.5 of 3 s forward, and as much of 6 s backward"
    assert cause.seen == "A recurrent cell is called 60 times in each step"
    assert not cause.is_removed


def test_all_lines_that_predict_are_named() -> None:
    (cause,) = causes(SEEN, called("predict", 300, 9.0, "a.py:9", "a.py:11", "a.py:12"))
    assert cause.place == "a.py:9"
    assert cause.seen == (
        "model.predict(), also in a.py:11 and a.py:12, is called 3 times in each step"
    )


def growing(kind: str, name: str, gain: float = 1.0) -> dict[str, Any]:
    return {"growing": [{"function": "a.py:1", "name": name, "kind": kind, "gain": gain}]}


def slower(seconds: float) -> Observed:
    """Steps that take longer and longer."""
    times = tuple((float(step), 0.01 + seconds * step, 32.0) for step in range(10, 1000, 10))
    return replace(SEEN, steps=1000, step_times=times)


def in_line(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Facts of a line that takes ever more of the time, and its text."""
    facts = {"lines": {"a.py:9": 0.6}, "early": {"a.py:9": 0.1}, "late": {"a.py:9": 0.9}}
    return facts, {"a.py:9": text}


@pytest.mark.parametrize(
    ("kind", "name"), [("graph", "growing-graph"), ("list of graphs", "kept-graphs")]
)
def test_graphs_that_are_kept_are_named(kind: str, name: str) -> None:
    every = growing(kind, "total")["growing"] + growing(kind, "other", 0.5)["growing"]
    (cause,) = causes(SEEN, {"growing": every})
    assert cause.name == name
    assert cause.seen.startswith("total keeps the graph of every step")
    assert cause.variable is not None


@pytest.mark.parametrize(("kind", "name"), [("tensor", "growing-tensor"), ("list", "growing-list")])
def test_what_gets_longer_is_named_if_the_line_that_gets_slower_uses_it(
    kind: str, name: str
) -> None:
    facts, texts = in_line("mean = sum(seen) / len(seen)")
    every = growing(kind, "seen")["growing"] + growing(kind, "losses", 5.0)["growing"]
    evidence = Evidence(slower(1e-4), {**facts, "growing": every}, 2, 2, texts)
    (cause,) = find(evidence)
    assert (cause.name, cause.share) == (name, 0.6)
    assert cause.seen == "seen gets longer with every step and is used in a.py:9"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "sum(seen)"), (1e-4, "sum(unseen)"), (1e-4, "self.seen"), (1e-4, "")],
)
def test_a_list_that_grows_is_no_cause_by_itself(seconds: float, text: str) -> None:
    facts, texts = in_line(text)
    found = find(Evidence(slower(seconds), {**facts, **growing("list", "seen")}, 2, 2, texts))
    assert found == []


def test_the_page_of_causes_has_a_row_for_each() -> None:
    page = (Path(__file__).parents[3] / "docs" / "causes.md").read_text("utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert [row[0] for row in rows] == [f"| `{each.name}`" for each in KNOWN]
    assert [row[2] for row in rows] == [each.cure for each in KNOWN]
    assert [row[4] for row in rows] == [f"[source]({each.source}) |" for each in KNOWN]
    assert f"{len(KNOWN)} known causes" in page


@pytest.mark.parametrize("facts", [{"workers": 0, **sampled(loader=0.5)}, SLOW_WORKERS])
def test_random_batches_are_not_to_be_prepared_in_advance(facts: dict[str, Any]) -> None:
    (cause,) = causes(SEEN, facts)
    assert cause.cure == "Prepare the data once, in advance"
    (cause,) = causes(SEEN, {**facts, "draws": True})
    assert "not all of it can be done in advance" in cause.cure


@pytest.mark.parametrize(("share", "place"), [(0.2, "a.py:36"), (0.01, "a.py:5")])
def test_of_a_slow_loader_the_slow_line_is_named(share: float, place: str) -> None:
    seen = replace(SEEN, places={**SEEN.places, "loading": "a.py:69"})
    facts = {
        "workers": 0,
        **sampled(loader=0.5),
        "loading": ["a.py:36", "a.py:37", "a.py:69"],
        "lines": {"a.py:36": share, "a.py:37": 0.005, "a.py:69": 0.3},
    }
    (cause,) = causes(seen, facts)
    assert (cause.name, cause.place) == ("loading-in-process", place)
