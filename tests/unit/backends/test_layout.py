"""Facts that ranks must agree on before they train together."""

from __future__ import annotations

import pytest

from trainmark.backends.layout import Layout, require_agreement
from trainmark.errors import RanksDiffer


def test_ranks_that_say_the_same_may_be_on_any_host() -> None:
    require_agreement(
        [{"host": "a", "version of torch": "2.13"}, {"host": "b", "version of torch": "2.13"}]
    )


def test_the_first_difference_of_ranks_is_named_with_both_hosts() -> None:
    facts = [
        {"host": "a", "version of torch": "2.13", "options": "x"},
        {"host": "a", "version of torch": "2.13", "options": "x"},
        {"host": "b", "version of torch": "2.12", "options": "y"},
    ]
    with pytest.raises(RanksDiffer) as raised:
        require_agreement(facts)
    assert str(raised.value).startswith(
        "the ranks differ in their version of torch: expected 2.13 as on a (rank 0), found 2.12 "
        "on b (rank 2)"
    )


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_fact_that_one_rank_lacks_is_a_difference(lacking: int) -> None:
    facts = [{"host": "a", "cuda": "13.0"}, {"host": "b", "cuda": "13.0"}]
    del facts[lacking]["cuda"]
    with pytest.raises(RanksDiffer, match="cuda"):
        require_agreement(facts)


def test_ranks_are_copies_times_stages() -> None:
    assert (Layout(4, 3).ranks, Layout(4, 3).title) == (12, "4×3")
