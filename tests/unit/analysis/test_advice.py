"""The advice against each cause, and its promise."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.analysis.test_attribution import STEP, dissection, on_cpu
from trainmark.analysis.advice import WORDS, Advice, advise
from trainmark.analysis.attribution import (
    CAUSES,
    FAST,
    LARGER,
    PEAK,
    SHRUNK,
    WHOLE,
    Share,
    attribute,
)
from trainmark.analysis.statistics import Estimate
from trainmark.report.explanation_table import sentences

NO_STARTS = ({WHOLE: 0.0, LARGER: 0.0, FAST: 0.0},) * 5


def advised(seconds: dict[str, float], **changes: Any) -> tuple[Advice, ...]:
    found = dissection([seconds] * 5, **changes)
    return advise(found, attribute(found), "examples/recipes/torch_fast.py")


def test_a_timed_remedy_for_input_comes_before_an_untimed_one() -> None:
    timed, untimed = advised(on_cpu(**{FAST: STEP / 3}), starts=NO_STARTS)
    assert (timed.cause, timed.style, timed.measured) == ("input", "fast", True)
    assert "(see examples/recipes/torch_fast.py)" in timed.do
    assert timed.promise == pytest.approx(3)
    assert (untimed.style, untimed.measured) == (None, False)
    assert untimed.promise == pytest.approx(1 / (1 - 8 / STEP))


def test_the_promise_is_at_most_100_where_noise_exceeds_the_step() -> None:
    found = dissection([on_cpu()] * 5)
    attribution = dataclasses.replace(attribute(found), shares=(Share("input", 1.01, 0.98, 1.04),))
    assert max(each.promise for each in advise(found, attribution)) == pytest.approx(100)


def test_what_is_no_faster_is_not_promised() -> None:
    (only,) = advised(on_cpu(**{FAST: STEP}), starts=NO_STARTS)
    assert not only.measured


def dispatching() -> dict[str, float]:
    """A step that mostly starts operations."""
    return {
        WHOLE: 10.0,
        "without input": 10.0,
        "without copy": 10.0,
        "without optimizer": 10.0,
        SHRUNK: 8.0,
        f"{SHRUNK} ablation of memory": 8.0,
        "ablation of memory": 10.0,
        LARGER: 28.0,
        PEAK: 0.1,
    }


def test_the_promise_of_a_larger_batch_is_per_example() -> None:
    best = advised(dispatching(), starts=NO_STARTS)[0]
    assert (best.cause, best.batch) == ("dispatch", 1000)
    assert best.promise == pytest.approx(10 * 10 / 28)
    # 8 s whatever the examples, and 0.2 s for each tenth of them: 2 s more for ten times as many.
    assert best.fixed == pytest.approx(0.8)


def test_a_too_small_batch_is_named_if_a_larger_one_helps_most() -> None:
    attribution = attribute(dissection([dispatching()] * 5, starts=NO_STARTS))
    do, _, cause = sentences(attribution, advised(dispatching(), starts=NO_STARTS))
    assert do.startswith("Use a batch of 1,000 instead of 100.")
    assert (
        "the batch is too small: 80.0 % of a step doesn't depend on the number of examples" in cause
    )
    assert "dispatch (80.0 %)" in cause


def test_a_batch_is_not_too_small_if_a_larger_one_hardly_helps() -> None:
    seconds = dispatching() | {LARGER: 96.0}
    attribution = attribute(dissection([seconds] * 5, starts=NO_STARTS))
    assert "too small" not in "".join(sentences(attribution, advised(seconds, starts=NO_STARTS)))


def test_advice_skips_a_cause_that_nothing_can_reduce() -> None:
    seconds = on_cpu(**{PEAK: 100.0, "without input": STEP - 0.5})
    found = dissection([seconds] * 5)
    shares = attribute(found)
    assert shares.shares[0].cause != "input"
    assert all(each.cause != "compute" for each in advise(found, shares))


def test_where_most_is_unexplained_nothing_is_advised() -> None:
    found = dissection([{WHOLE: 10.0, "without input": 9.0}] * 5)
    assert advise(found, attribute(found)) == ()
    assert "Too noisy to tell" in sentences(attribute(found), ())[0]


def test_a_share_that_may_be_noise_gives_no_advice() -> None:
    """Making batches seems to cost 8 of 10 ms, but without it a step took anything from 2 to 12."""
    rounds = [
        {WHOLE: 10.0, "without input": without, PEAK: 1e-9}
        for without in (2.0, 2.0, 12.0, 12.0, 12.0)
    ]
    found = dissection(rounds, starts=NO_STARTS)
    attribution = attribute(found)
    share = next(each for each in attribution.shares if each.cause == "input")
    assert share.share > 0.5
    assert share.low is not None and share.low < 0
    assert advise(found, attribution) == ()
    assert "exceeds both the noise" in sentences(attribution, ())[0]


def test_all_cores_are_a_measured_promise() -> None:
    found = dissection([on_cpu()] * 5, threads_ratio=Estimate(0.5, 0.45, 0.55))
    best = advise(found, attribute(found))[0]
    assert (best.cause, best.measured) == ("threads", True)
    assert best.promise == pytest.approx(2)


def test_people_get_three_sentences() -> None:
    found = dissection([on_cpu(**{FAST: STEP / 3})] * 5, starts=NO_STARTS)
    attribution = attribute(found)
    said = sentences(attribution, advise(found, attribution))
    assert len(said) == 3
    assert said[0].startswith("Train like --style fast")
    assert "3.00×" in said[1]
    assert "The largest cause is input" in said[2]


def test_every_cause_has_words() -> None:
    assert set(WORDS) == set(CAUSES)
