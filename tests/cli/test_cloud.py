"""``--cloud``: what is asked, said and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainmark.cli.main import run
from trainmark.execute import scheduler
from trainmark.measure import cloud
from trainmark.measure.cloud import Heard
from trainmark.record.record import Cloud

NC6 = Cloud("azure", "Standard_NC6s_v3", "eastus2")
MEASURE = ["measure", "--repeats", "1", "--name", "nothing"]


def test_what_is_heard_stands_in_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cloud, "ask", lambda: Heard(NC6, "this is azure Standard_NC6s_v3"))
    assert run([*MEASURE, "--out", str(tmp_path), "--cloud", "--json", "--", "true"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["machine"]["cloud"] == {
        "provider": "azure",
        "instance_type": "Standard_NC6s_v3",
        "region": "eastus2",
    }
    assert "note: this is azure Standard_NC6s_v3" in err
    (path,) = tmp_path.glob("*.json")
    assert run(["show", str(path)]) == 0
    assert "rented: azure Standard_NC6s_v3, eastus2" in capsys.readouterr().out


def test_where_nobody_answers_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cloud, "ask", lambda: Heard(None, "no metadata service answered"))
    assert run([*MEASURE, "--out", str(tmp_path), "--cloud", "--json", "--", "true"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["machine"]["cloud"] is None
    assert "note: no metadata service answered" in err


def test_nobody_is_asked_unless_somebody_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked() -> Heard:
        raise AssertionError("a metadata service was asked")

    monkeypatch.setattr(cloud, "ask", asked)
    assert run([*MEASURE, "--out", str(tmp_path), "--json", "--", "true"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["machine"]["cloud"] is None


@pytest.mark.parametrize(
    ("framework", "words"),
    [("numpy", ["run", "mnist-mlp32", "--steps", "1"]), ("torch", ["scale", "mnist-mlp128", "--prediction", "none"])],
    ids=["run", "scale"],
)
def test_run_and_scale_pass_it_on(
    framework: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at as far as the machine that they are about to record."""

    class Seen(Exception):
        """This is far enough."""

    def carry_out(tasks: object, notes: object, store: object, observer: object, here: Any, *_: object) -> None:
        raise Seen(here().machine.cloud)

    pytest.importorskip(framework)
    monkeypatch.setattr(cloud, "ask", lambda: Heard(NC6, "this is azure Standard_NC6s_v3"))
    monkeypatch.setattr(scheduler, "carry_out", carry_out)
    common = ["--backend", framework, "--dataset", "synthetic-digits", "--out", str(tmp_path), "--cloud"]
    with pytest.raises(Seen) as seen:
        run([*words, *common])
    assert seen.value.args == (NC6,)
