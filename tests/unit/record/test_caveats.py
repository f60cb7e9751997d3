from __future__ import annotations

import json

from trainmark.record.caveats import Caveat


def test_every_caveat_has_a_unique_id_and_meaning() -> None:
    assert (
        len({caveat.value for caveat in Caveat})
        == len({caveat.meaning for caveat in Caveat})
        == len(Caveat)
    )
    for caveat in Caveat:
        assert caveat.value == caveat.name.lower().replace("_", "-")
        assert caveat.meaning.strip() == caveat.meaning != ""
        assert not caveat.meaning.endswith(".")


def test_a_caveat_is_found_by_its_id_and_written_as_it() -> None:
    assert Caveat("one-epoch") is Caveat.ONE_EPOCH
    assert json.dumps(Caveat.ONE_EPOCH) == '"one-epoch"'
