"""What the two towers, which never meet, have to agree on."""

from __future__ import annotations

from trainmark.analysis import attribution
from trainmark.backends import parts


def test_what_is_taken_away_is_what_is_reckoned_with() -> None:
    assert (*attribution.PARTS, "loss") == parts.PARTS
