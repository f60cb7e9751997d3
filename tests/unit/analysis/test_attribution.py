"""A step divided among causes: the costs are those that were planted, and add up."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trainmark.analysis.attribution import (
    CAPTURED,
    EMPTY,
    FAST,
    PARTS,
    PEAK,
    PRODUCTS,
    SHRUNK,
    WHOLE,
    Dissection,
    Round,
    Sitting,
    attribute,
    speedup,
)
from trainmark.analysis.statistics import Estimate

PLAIN = "ablation of memory"
PLANTED = {
    "fetch": 1.0,
    "input": 8.0,
    "copy": 2.0,
    "optimizer": 3.0,
    "dispatch": 1.5,
    "memory": 0.5,
    "compute": 2.0,
    "shapes": 1.0,
    "unexplained": 1.0,
}
STEP = sum(PLANTED.values())


def on_cpu(**changes: float) -> dict[str, float]:
    """The times of a step that costs what is planted, on a device that computes while the host
    waits."""
    left = STEP
    seconds = {WHOLE: STEP}
    for part in ("fetch", "input", "copy", "optimizer"):
        left -= PLANTED[part]
        seconds[f"without {part}"] = left
    kernels = PLANTED["compute"] + PLANTED["shapes"] + PLANTED["unexplained"]
    plain_dispatch = 1.2
    return (
        seconds
        | {
            SHRUNK: PLANTED["dispatch"],
            f"{SHRUNK} {PLAIN}": plain_dispatch,
            PLAIN: kernels + plain_dispatch,
            PRODUCTS: PLANTED["compute"] + PLANTED["shapes"] + 0.1,
            EMPTY: 0.1,
            PEAK: 0.2,
        }
        | changes
    )


def dissection(
    *sittings: list[dict[str, float]],
    starts: dict[str, float] | tuple[Round, ...] | None = None,
    lengths: dict[str, tuple[int, int]] | None = None,
    **changes: Any,
) -> Dissection:
    """Return these rounds as those of each process; ``starts`` are those of each round, or of
    all."""
    values: dict[str, Any] = {
        "sittings": tuple(
            Sitting(
                rounds=tuple(rounds),
                starts=starts if isinstance(starts, tuple) else (starts or {},) * len(rounds),
                lengths=lengths or {},
            )
            for rounds in sittings
        ),
        "steps_per_epoch": 50,
        "flops": 10.0,
        "peak_flops": 1.0,
        "batch": 100,
        "larger": 10,
        "evaluations": (4.0, 5.0, 6.0),
        "compile_seconds": 30.0,
        "steps": 100,
        "number_of_evaluations": 2,
        "accelerator": False,
        "dropped": {},
    }
    return Dissection(**(values | changes))


def shares(found: Dissection) -> dict[str, float]:
    attribution = attribute(found)
    return {share.cause: share.share for share in attribution.shares} | {
        "unexplained": attribution.unexplained.value
    }


def test_every_cause_has_the_share_that_was_planted() -> None:
    found = shares(dissection([on_cpu()] * 5))
    for cause, seconds in PLANTED.items():
        assert found[cause] == pytest.approx(seconds / STEP), cause


def test_shares_without_evaluation_and_compile_add_up_to_1() -> None:
    attribution = attribute(dissection([on_cpu()] * 5))
    steady = sum(share.share for share in attribution.shares if not share.on_top)
    assert steady + attribution.unexplained.value == pytest.approx(1)
    on_top = {share.cause: share.share for share in attribution.shares if share.on_top}
    assert on_top == {
        "evaluation": pytest.approx(2 * 5.0 / 100 / STEP),
        "compile": pytest.approx(30.0 / 100 / STEP),
    }


def test_the_start_of_an_epoch_is_spread_over_its_steps() -> None:
    found = dissection([on_cpu()] * 5, starts={WHOLE: 50.0 * STEP})
    assert shares(found)["epoch"] == pytest.approx(0.5)
    assert shares(found)["input"] == pytest.approx(0.5 * PLANTED["input"] / STEP)
    assert attribute(found).step_seconds.value == pytest.approx(2 * STEP)


def test_a_speed_up_is_per_example_and_includes_epoch_starts() -> None:
    rounds = [on_cpu(**{"larger": 40.0, FAST: 2.0})] * 5
    starts = ({WHOLE: 0.0, "larger": 0.0, FAST: 100.0},) * 5
    found = dissection(rounds, starts=starts)
    assert speedup(found, FAST).value == pytest.approx(STEP / (2.0 + 100.0 / 50))
    assert speedup(found, "larger", 10).value == pytest.approx(STEP / 4.0)


def test_the_largest_share_is_first_and_unknown_ones_are_named() -> None:
    seconds = on_cpu()
    del seconds["without copy"], seconds[PEAK], seconds[PRODUCTS]
    attribution = attribute(dissection([seconds] * 5, compile_seconds=None))
    assert attribution.shares[0].cause == "input"
    assert attribution.unknown == ("copy", "compute", "shapes", "compile")


def test_the_share_of_a_missing_variant_stays_unexplained() -> None:
    seconds = on_cpu()
    del seconds["without optimizer"]
    with_it = shares(dissection([on_cpu()] * 5))
    without_it = shares(dissection([seconds] * 5))
    assert without_it["input"] == pytest.approx(with_it["input"])
    assert without_it["memory"] == pytest.approx(with_it["memory"] + with_it["optimizer"])


def test_on_an_accelerator_capturing_the_step_saves_the_dispatch() -> None:
    """A host that launches for 4 while the device computes for 3: only the fourth is what launching
    costs."""
    seconds = {WHOLE: 4.0, "without optimizer": 4.0, CAPTURED: 3.0, PLAIN: 2.5, PEAK: 0.2}
    found = shares(dissection([seconds] * 5, accelerator=True))
    assert found["dispatch"] == pytest.approx(1 / 4)
    assert found["memory"] == pytest.approx(0.5 / 4)
    assert found["compute"] == pytest.approx(2 / 4)


def test_shares_of_layer_kinds_come_out_of_memory_and_compute() -> None:
    left = STEP - sum(PLANTED[part] for part in PARTS) - PLANTED["dispatch"]
    layers = {
        "ablation of attention": left - 0.2,
        "ablation of norms": left - 0.3,
        "ablation of embedding": 0.4,
    }
    tiny = {"ablation of attention": 1.4, "ablation of norms": 1.3, "ablation of embedding": 0.7}
    seconds = {name: took + tiny[name] for name, took in layers.items()}
    seconds |= {f"{SHRUNK} {name}": took for name, took in tiny.items()}
    known = shares(dissection([on_cpu()] * 5))
    found = shares(dissection([on_cpu(**seconds)] * 5))
    for cause, took in {
        "attention": 0.2,
        "norms": 0.1,
        "embedding": 0.4,
        "memory": PLANTED["memory"] - 0.3,
    }.items():
        assert found[cause] == pytest.approx(took / STEP), cause
    assert found["unexplained"] == pytest.approx(known["unexplained"] - 0.4 / STEP)
    assert not {"attention", "norms", "embedding"} & set(
        attribute(dissection([on_cpu()] * 5)).unknown
    )


def test_a_variant_without_its_counterpart_has_no_share() -> None:
    """What launching the plain network costs was not measured, so ``memory`` would hold some of
    that."""
    seconds = on_cpu()
    del seconds[f"{SHRUNK} {PLAIN}"]
    attribution = attribute(dissection([seconds] * 5))
    assert "memory" in attribution.unknown


def test_compute_is_never_more_than_what_is_left() -> None:
    found = shares(dissection([on_cpu(**{PEAK: 100.0})] * 5))
    assert found["compute"] == pytest.approx((2.0 + 1.0 + 1.0) / STEP)
    assert found["shapes"] == 0
    assert found["unexplained"] == pytest.approx(0)


def test_the_share_of_idle_cores_reduces_all_other_shares() -> None:
    found = dissection([on_cpu()] * 5, threads_ratio=Estimate(0.6, 0.5, 0.7))
    attribution = attribute(found)
    assert shares(found)["threads"] == pytest.approx(0.4)
    assert shares(found)["input"] == pytest.approx(0.6 * PLANTED["input"] / STEP)
    threads = next(share for share in attribution.shares if share.cause == "threads")
    assert (threads.low, threads.high) == (pytest.approx(0.3), pytest.approx(0.5))
    assert attribution.step_seconds.value == pytest.approx(STEP / 0.6)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = random.Random(7)
    covered = 0
    for _ in range(60):
        covered += _holds(PLANTED["input"], dissection([_noisy(rng) for _ in range(12)]))
    assert 54 <= covered <= 60


def test_the_interval_knows_that_processes_differ() -> None:
    """Each process makes batches at its own pace, which no number of rounds in it would
    tell."""
    rng = random.Random(5)
    covered = covered_by_one = 0
    for _ in range(25):
        rounds = []
        for _ in range(5):
            luck = PLANTED["input"] * rng.gauss(0, 0.1)
            rounds.append(
                [
                    _noisy(rng, **{WHOLE: STEP + luck, "without fetch": STEP - 1.0 + luck})
                    for _ in range(5)
                ]
            )
        covered += _holds(PLANTED["input"], dissection(*rounds))
        covered_by_one += _holds(PLANTED["input"], dissection(rounds[0] * 5))
    assert covered >= 21
    assert covered_by_one < 20


def test_a_variant_that_a_process_could_not_time_is_unknown() -> None:
    less = on_cpu()
    del less["without copy"]
    attribution = attribute(dissection([on_cpu()] * 4, [less] * 3))
    assert "copy" in attribution.unknown
    assert len(dissection([on_cpu()] * 4, [less] * 3).rounds) == 7


def test_a_machine_that_is_slow_half_of_the_time_moves_no_share() -> None:
    """Some stretches take twice as long, of the short ones as of the long ones."""
    rng = random.Random(3)
    lengths = dict.fromkeys(on_cpu(), (2, 16))
    rounds: list[Round] = []
    starts: list[Round] = []
    for _ in range(20):
        slow = {name: rng.choices((1.0, 2.0), weights=(3, 2), k=2) for name in on_cpu()}
        short = {name: 2 * step * slow[name][0] for name, step in on_cpu().items()}
        long = {name: 16 * step * slow[name][1] for name, step in on_cpu().items()}
        rounds.append({name: (long[name] - short[name]) / 14 for name in long})
        starts.append({name: short[name] - 2 * rounds[-1][name] for name in long})
    found = shares(
        dissection([dict(each) for each in rounds], starts=tuple(starts), lengths=lengths)
    )
    for cause, seconds in PLANTED.items():
        assert found[cause] == pytest.approx(seconds / STEP), cause


def _holds(seconds: float, found: Dissection) -> bool:
    """Whether the interval of ``input`` contains the true value."""
    share = next(each for each in attribute(found).shares if each.cause == "input")
    assert share.low is not None
    assert share.high is not None
    return share.low <= seconds / STEP <= share.high


def _noisy(rng: random.Random, **changes: float) -> dict[str, float]:
    """Return a round in which the machine is slower or faster by a few percent, and every stretch
    again by some."""
    pace = rng.lognormvariate(0, 0.05)
    return {
        name: seconds * pace * rng.lognormvariate(0, 0.02)
        for name, seconds in on_cpu(**changes).items()
    }


def test_one_bad_stretch_does_not_move_a_share() -> None:
    rounds: list[Round] = [on_cpu()] * 11 + [on_cpu(**{"without input": 500.0})]
    found = dissection([dict(each) for each in rounds])
    assert shares(found)["input"] == pytest.approx(PLANTED["input"] / STEP)
