"""Scripts are compared with what is known of them, and a wrong figure lowers the score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foreign import scripts
from foreign.scoring import Judged, Seen, differences, is_useful, score
from foreign.scripts import Truth
from foreign.trials import changed_files, digests

TRUTH = Truth("torch", (100, 100), (64, 64), (2, 4))
OBSERVED: dict[str, Any] = {
    "framework": "torch",
    "steps": 100,
    "examples_per_step": 63.7,
    "evaluations": 3,
    "training_starts": [0],
}


def test_what_is_as_it_should_be_is_right() -> None:
    assert differences(TRUTH, OBSERVED) == ([], [])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"framework": "jax"}, "framework jax, not torch"),
        ({"steps": 99}, "steps 99, not 100"),
        ({"steps": 1_000}, "steps 1,000, not 100"),
        ({"evaluations": 5}, "evaluations 5, not 2 to 4"),
        ({"training_starts": [0, 50]}, "trainings 2, not 1"),
        ({"examples_per_step": 4.0}, "examples 4 a step, not 64"),
    ],
)
def test_each_wrong_figure_is_named(changed: dict[str, Any], said: str) -> None:
    assert differences(TRUTH, {**OBSERVED, **changed}) == ([said], [])


def test_a_number_that_is_not_known_is_not_wrong() -> None:
    assert differences(TRUTH, {**OBSERVED, "examples_per_step": None}) == ([], ["examples"])


def test_a_number_where_there_is_none_is_wrong() -> None:
    wrong, _ = differences(Truth("torch", (100, 100), None, (2, 4)), OBSERVED)
    assert wrong == ["examples 63.7 a step, which has no such number"]


def test_a_script_without_steps_is_seen_wrongly() -> None:
    assert differences(TRUTH, None) == (["no steps were seen"], [])


@pytest.mark.parametrize(
    ("sentence", "useful"),
    [
        ("Load in the background (train.py:12). This is 2.0× faster with workers=2.", True),
        ("Load in the background (train.py:10-14). This is 2.0× faster with workers=2.", True),
        ("Load in the background (train.py:15). This is 2.0× faster with workers=2.", False),
        ("Load in the background (other.py:12). This is 2.0× faster with workers=2.", False),
        ("Use bf16 (train.py:12).", False),
        ("Use bf16 (train.py:12).\nNot tried: workers=2.", False),
    ],
)
def test_an_answer_is_useful_if_it_names_the_line_and_a_cure(sentence: str, useful: bool) -> None:
    truth = Truth("torch", (1, 1), 1, (0, 0), slow=("train.py:11-13",), cures=("workers",))
    assert is_useful(truth, sentence.splitlines()) is useful


def test_that_nothing_helps_is_useful_where_nothing_does() -> None:
    truth = Truth("torch", (1, 1), None, (0, 0), cures=("nothing",))
    assert is_useful(truth, ["None of the changes tried makes this script clearly faster."])
    assert not is_useful(truth, ["Use bf16 (train.py:12)."])


def test_the_score_is_one_line() -> None:
    found = [
        Seen("a", (), (), (), 10, True, 50.0),
        Seen("b", ("steps 1, not 2",), (), (), 8, False, 60.0),
        Seen("c", (), ("examples",), ("explain: x was made",), 2, None, 70.0),
    ]
    judged = {"a": Judged(("A sentence: it is not so.",)), "b": Judged(())}
    assert score(found, judged) == (
        "seen rightly 2 of 3 (1 with a figure unknown), harmed 1, wrong sentences 1 of 18, "
        "useful 1 of 2, median 60 s"
    )


def test_each_changed_file_is_named(tmp_path: Path) -> None:
    for name in ("kept", "changed", "removed"):
        (tmp_path / name).write_text(name)
    before = digests(tmp_path)
    (tmp_path / "changed").write_text("differently")
    (tmp_path / "removed").unlink()
    (tmp_path / "made").mkdir()
    assert changed_files(before, digests(tmp_path)) == [
        "made was made",
        "removed was removed",
        "changed was changed",
    ]


def test_the_listed_scripts_can_be_read_and_none_of_them_is_drawn() -> None:
    names = {script.name for script in scripts.listed()}
    drawn = scripts.drawn(60, seed=1)
    assert len(set(drawn)) == 60
    assert not names & set(drawn)
    assert drawn == scripts.drawn(60, seed=1)
