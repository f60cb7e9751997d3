"""The runner keeps an item within its limit, writes every result at once, and resumes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from gpu import store
from gpu.measurement import Outcome
from gpu.runner import measure_item
from gpu.session import Session


@dataclass
class Step:
    """A measurement with a given outcome."""

    name: str
    outcome: Outcome | BaseException = field(default_factory=lambda: Outcome([{"value": 1}]))
    seconds: float = 20.0
    given: list[float] = field(default_factory=list)

    def measure(self, session: Session, seconds: float) -> Outcome:
        self.given.append(seconds)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@dataclass
class Question:
    """An item of such measurements."""

    steps: list[Step]
    name: str = "question"
    number: str = "0"
    question: str = "Does it?"
    limit: float = 100.0
    how: str = "by measuring."

    def measurements(self) -> list[Step]:
        return self.steps

    def tables(self, results: object) -> str:
        return "| table |" if results else ""


def run(item: Question, session: Session, seconds: float = 100.0) -> list[str]:
    return [str(each) for each in measure_item(item, session, time.monotonic() + seconds)]


def test_what_is_there_is_not_measured_again(session: Session) -> None:
    item = Question([Step("first"), Step("second", Outcome([], ["it broke"]))])
    assert run(item, session) == ["question, second: it broke"]
    item.steps[1].outcome = Outcome([{"value": 2}])
    assert run(item, session) == []
    assert [len(step.given) for step in item.steps] == [1, 2]
    assert store.read(session.folder, "question")["second"].rows == [{"value": 2}]


def test_a_failure_does_not_end_the_others(session: Session) -> None:
    item = Question([Step("first", ValueError("no such thing")), Step("second")])
    assert run(item, session) == ["question, first: ValueError: no such thing"]
    assert store.read(session.folder, "question")["second"].complete


def test_what_does_not_fit_is_named(session: Session) -> None:
    item = Question([Step("first")])
    assert "did not fit into the limit" in run(item, session, seconds=10)[0]
    assert item.steps[0].given == []


def test_a_measurement_gets_its_share_and_no_more(session: Session) -> None:
    item = Question([Step("short", seconds=20), Step("long", seconds=900)])
    run(item, session, seconds=60)
    short, long = (step.given[0] for step in item.steps)
    assert short == 20
    assert long < 60


def test_nothing_begins_after_an_interruption(session: Session) -> None:
    item = Question([Step("first", KeyboardInterrupt()), Step("second")])
    assert run(item, session) == [
        "question, first: interrupted",
        "question, second: interrupted before it began",
    ]


def test_paths_of_this_machine_are_not_kept(session: Session) -> None:
    item = Question([Step("first", Outcome([], [f"{session.folder}/records is empty"]))])
    run(item, session)
    assert store.read(session.folder, "question")["first"].problems == ["FOLDER/records is empty"]
