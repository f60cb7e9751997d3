"""Every text of a new record is masked, but not what is compared."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from tests.records import a_command, a_record
from trainmark.execute.parent.command import Command, CommandRun, CommandSide, sides
from trainmark.execute.parent.command_record import CommandRecordBuilder
from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.task import command_in_rounds, remaining
from trainmark.execute.protocol.answers import CommandExited, CommandStarted
from trainmark.masking import MASK, Secrets
from trainmark.record import codec
from trainmark.record.masked import masked
from trainmark.record.observed import Observed
from trainmark.record.record import Group, Outcome, Record

SECRET = "hunter2Tiger"


def measured(command: Command, side: CommandSide, outcome: Outcome, line: str = "") -> Record:
    """The record of one run of ``command`` that has ended."""
    run = CommandRun(command, side, Settings(command=line), 0, 0, "plan", "plan")
    builder = CommandRecordBuilder(run, read_machine_state(), "abc")
    builder.on_answer(CommandStarted(99, 0.0))
    odd = [f"password={SECRET}", f"it printed {SECRET}"]
    exited = CommandExited(1, 1.0, 1.0, 0.0, None, 0, 2, odd, {}, None)
    builder.on_answer(exited)
    return builder.record(outcome)


def test_no_part_of_a_commands_record_has_its_secrets(tmp_path: Path) -> None:
    folder = tmp_path / f"runs-{SECRET}"
    folder.mkdir()
    words = ("python", "train.py", "--api-key", SECRET, f"TOKEN={SECRET}", f"out/{SECRET}.txt")
    command = Command(f"train-{SECRET}.py", words, folder)
    outcome = Outcome("failed", f"it needs {SECRET}", stderr_tail=f"wrong key: {SECRET}\n")
    line = f"trainmark measure -- python train.py --api-key {SECRET}"
    record = measured(command, CommandSide({}), outcome, line)
    text = codec.encode(record).decode()
    assert SECRET not in text
    assert record.process is not None
    assert record.process.argv == [
        "python", "train.py", "--api-key", MASK, f"TOKEN={MASK}", f"out/{MASK}.txt"
    ]  # fmt: skip
    assert record.command == "trainmark measure -- python train.py --api-key '***'"
    assert record.outcome.stderr_tail == f"wrong key: {MASK}\n"


def test_a_secret_of_the_environment_is_not_in_a_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    command = Command("train.py", ("python", "train.py"), Path("/work"))
    record = measured(command, CommandSide({}), Outcome("failed", "x", stderr_tail=SECRET))
    assert record.outcome.stderr_tail == MASK


def test_what_is_compared_stays() -> None:
    words = ("python", "train.py", "--token", "{token}", "--password", f"{SECRET}{{token}}")
    command = Command("train.py", words, Path("/work"))
    line = "trainmark measure --vary token=cls,mean -- python train.py"
    every = sides(command, (), {"token": ("cls", "mean")}, {"API_KEY": (SECRET, "other")})
    records = [measured(command, side, Outcome("ok"), line) for side in every]
    styles = [record.backend.style for record in records]
    assert styles[0] == f"token=cls API_KEY={SECRET}"
    assert len(set(styles)) == 4
    assert len({record.id for record in records}) == 4
    first = records[0].process
    assert first is not None
    assert first.argv == ["python", "train.py", "--token", "cls", "--password", f"{MASK}cls"]
    assert first.environment == {"API_KEY": SECRET}
    assert records[0].command == line


@pytest.mark.parametrize("rotated", [SECRET, "another2Value"])
def test_resume_recognises_a_run_with_a_secret(rotated: str) -> None:
    def planned(secret: str) -> Command:
        return Command("train.py", ("python", "train.py", "--api-key", secret), Path("/work"))

    tasks = command_in_rounds(planned(rotated), sides(planned(rotated), (), {}), 1, Settings())
    done = measured(planned(SECRET), CommandSide({}), Outcome("ok"))
    read_again = codec.decode(codec.encode(done), "r.json")
    assert remaining(tasks, [read_again]) == []


def test_resume_tells_other_words_apart() -> None:
    def planned(epochs: str) -> Command:
        return Command("t.py", ("python", "--api-key", SECRET, epochs), Path("/work"))

    tasks = command_in_rounds(planned("4"), sides(planned("4"), (), {}), 1, Settings())
    done = measured(planned("3"), CommandSide({}), Outcome("ok"))
    assert remaining(tasks, [done]) == tasks


def test_fingerprints_are_the_same_for_any_secret() -> None:
    """A hash of a short secret, next to all other words, could be inverted by trying all."""
    commands = [
        Command("t.py", ("python", "t.py", "--password", secret), Path("/work"))
        for secret in ("aaaa", "bbbb")
    ]
    assert commands[0].fingerprint == commands[1].fingerprint


def test_texts_at_any_depth_are_masked() -> None:
    url = f"https://user:{SECRET}@host"
    record = a_record()
    worse = structs.replace(
        record,
        backend=structs.replace(record.backend, settings={"a": [{"b": url}], "api_key": SECRET}),
        machine=structs.replace(record.machine, labels={"password": SECRET, "x": url}),
        python=structs.replace(record.python, packages={"mine": f"1.0 from {url}"}),
        observed=Observed("torch", (url,), 1, 1.0, places={"model": url}, changed={"x": url}),
        command=f"trainmark.run('{url}')",
    )
    assert SECRET not in codec.encode(masked(worse, Secrets())).decode()


def test_closed_lists_numbers_and_structure_stay() -> None:
    """A status that is also a user's password must stay, or the record could not be read."""
    record = a_command(status="failed", seconds=(1.0, 2.0), examples=600)
    hidden = masked(record, Secrets.of(["--password", "failed", "--secret", "python"], {}))
    assert codec.decode(codec.encode(hidden), "r.json") == record


def test_a_record_without_secrets_is_the_same() -> None:
    assert masked(a_record(), Secrets()) == a_record()
    values = {"learning_rate": 0.1, "token": "cls"}
    trial = structs.replace(a_record(), group=Group("g", kind="sweep", trial=1, values=values))
    assert masked(trial, Secrets()) == trial


def test_the_observers_json_is_still_json() -> None:
    facts = json.dumps({"lines": {"a": "api_key='x'"}, "password": ["x", 'y"z']})
    observed = Observed("torch", (), 1, 1.0, changed={"facts": facts})
    hidden = masked(structs.replace(a_command(), observed=observed), Secrets())
    assert hidden.observed is not None
    assert msgspec.json.decode(hidden.observed.changed["facts"])["password"] == [MASK, MASK]
