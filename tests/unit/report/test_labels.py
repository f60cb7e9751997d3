"""Labels that distinguish groups, as short as possible."""

from __future__ import annotations

import dataclasses

import pytest

from tests.records import a_record
from trainmark.analysis.groups import key_of
from trainmark.record.facts import Key
from trainmark.report.conditions import CONDITIONS, SIDE
from trainmark.report.labels import apart, labels


def named(*changes: dict[str, object]) -> list[str]:
    return labels([key_of(a_record(**each)) for each in changes])  # type: ignore[arg-type]


def test_backend_style_and_device_are_enough_where_they_differ() -> None:
    assert named({}, {"device": "cuda:0"}) == ["numpy fast cpu", "numpy fast cuda:0"]


def test_what_else_differs_is_added_as_far_as_needed() -> None:
    assert named({"threads": 1}, {"threads": 2}) == [
        "numpy fast cpu 1 thread",
        "numpy fast cpu 2 threads",
    ]
    assert named({"machine": "a", "version": "1"}, {"machine": "b", "version": "2"}) == [
        "numpy fast cpu on a",
        "numpy fast cpu on b",
    ]


def test_labels_are_numbered_if_no_fact_differs() -> None:
    assert named({"sha256": "aa" * 32}, {"sha256": "bb" * 32}) == [
        "numpy fast cpu (1)",
        "numpy fast cpu (2)",
    ]


def test_a_name_that_never_ends_is_cut() -> None:
    first, second = named({"machine": "x" * 10_000}, {"machine": "x" * 10_000 + "y"})
    assert len(first) <= 70
    assert first != second


def test_labels_have_the_differences_and_the_caption_the_rest() -> None:
    one, two, three = (
        key_of(a_record(**each)) for each in ({}, {"device": "cuda:0"}, {"backend": "jax"})
    )
    assert apart(two, one) == ("cuda:0", "cpu", " with numpy fast")
    assert apart(three, one) == ("jax", "numpy", " with fast on cpu")
    assert apart(three, two) == ("jax cpu", "numpy cuda:0", " with fast")
    assert apart(one, key_of(a_record(threads=1))) == (
        "2 threads",
        "1 thread",
        " with numpy fast on cpu",
    )


UNSAID = {
    "workload",
    "step_fingerprint",
    "schedule_fingerprint",
    "dataset_sha256",
    "cpu_quota",
    "instance",
}
"""These are above every table already, or only shown by machine."""


@pytest.mark.parametrize(
    "name", [field.name for field in dataclasses.fields(Key) if field.name not in UNSAID]
)
def test_every_fact_that_separates_groups_has_words(name: str) -> None:
    key = key_of(a_record())
    other = dataclasses.replace(key, **{name: "EPYC" if name == "cpu" else 7})
    words = [*SIDE.values(), *(condition.words for condition in CONDITIONS)]
    assert any(of(key) != of(other) for of in words)
