"""``trainmark report``, from its arguments to a file."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.samples import a_full_record, full_records
from tests.records import a_record, write_all
from trainmark.cli.main import run

pytest.importorskip("vl_convert", reason="trainmark[report] is not installed")


def text_of(page: Path) -> str:
    """Return the text that a reader sees: no style, no scripts, no tags."""
    html = page.read_text()
    html = re.sub(r"<(style|script)\b.*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def report(tmp_path: Path, records: list, *arguments: str) -> Path:  # type: ignore[type-arg]
    out = tmp_path / "page.html"
    assert (
        run(["report", str(write_all(tmp_path / "records", records)), "-o", str(out), *arguments])
        == 0
    )
    return out


def test_the_answer_comes_first(tmp_path: Path) -> None:
    text = text_of(report(tmp_path, full_records()))
    assert "cuda:0 is 8.00× [" in text
    assert "faster than cpu; both learn the same (mnist-mlp512 with numpy fast)." in text
    assert text.index("8.00×") < text.index("Machines and versions")


def test_a_table_can_be_taken_away(tmp_path: Path) -> None:
    html = report(tmp_path, full_records()).read_text()
    links = re.findall(r'href="data:text/csv;base64,([^"]+)"', html)
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(links[0]).decode())))
    assert [row["device"] for row in rows] == ["cpu", "cuda:0"]
    assert float(rows[1]["speedup_ratio"]) == pytest.approx(8)


def test_json_says_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = report(tmp_path, full_records(3), "--json")
    said = json.loads(capsys.readouterr().out)
    assert said == {"output": str(out), "records": 6, "bytes": out.stat().st_size}


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([a_full_record()], "there is nothing to compare it with"),
        ([a_full_record(), a_full_record(workload="mnist-cnn")], "mnist-cnn"),
        ([a_record(status="failed", epochs=[])], "No run of mnist-mlp512 finished (1 tried)."),
        ([a_record(epochs=[])], "numpy fast cpu trained mnist-mlp512"),
        ([a_record(round=1), a_record(device="cuda:0")], "in too few rounds for a verdict"),
    ],
    ids=["one", "other-workloads", "failed-only", "no-epochs", "no-round-in-common"],
)
def test_whatever_there_is_makes_a_page(tmp_path: Path, records: list, said: str) -> None:  # type: ignore[type-arg]
    assert said in text_of(report(tmp_path, records))


def test_no_records_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 2
    assert "no records in" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_a_folder_that_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_all(tmp_path / "records", [a_record()])
    assert run(["report", str(folder), "-o", str(tmp_path / "nowhere" / "page.html")]) == 2
    assert "can't write" in capsys.readouterr().err


def test_an_explanation_is_drawn(tmp_path: Path) -> None:
    explained = {
        "workload": "mnist-cnn",
        "backend": "torch",
        "style": "idiomatic",
        "device": "cpu",
        "step_seconds": 0.02,
        "shares": [
            {"cause": "input", "share": 0.6},
            {"cause": "compile", "share": 3.0, "on_top": True},
        ],
        "unexplained": 0.4,
        "advice": [],
    }
    file = tmp_path / "why.json"
    file.write_text(json.dumps(explained))
    text = text_of(report(tmp_path, full_records(3), "--explanation", str(file)))
    assert "Where the time goes" in text
    assert "mnist-cnn: torch idiomatic cpu, input 60.0 %" in text


def test_what_is_no_explanation_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_all(tmp_path / "records", [a_record()])
    (tmp_path / "why.json").write_text("{}")
    assert (
        run(
            [
                "report",
                str(folder),
                "-o",
                str(tmp_path / "p.html"),
                "--explanation",
                str(tmp_path / "why.json"),
            ]
        )
        == 1
    )
    assert "is not an explanation" in capsys.readouterr().err


def test_no_framework_is_imported(tmp_path: Path) -> None:
    folder = write_all(tmp_path / "records", full_records(3))
    heavy = ("torch", "jax", "keras", "tensorflow", "mxnet", "pandas", "polars")
    script = (
        "import sys; from trainmark.cli.main import run; "
        f"assert run(['report', {str(folder)!r}, '-o', {str(tmp_path / 'p.html')!r}]) == 0; "
        f"print([each for each in {heavy} if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_copy_of_a_folder_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (write_all(tmp_path / name, full_records(3)) for name in ("a", "b"))
    assert run(["report", str(one), str(two), "-o", str(tmp_path / "page.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 6


def test_a_workload_that_can_not_be_read_leaves_the_rest_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = a_record()
    foreign.workload.spec.clear()
    foreign.workload.spec["name"] = "future"
    folder = write_all(tmp_path / "records", [foreign])
    assert run(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    assert "published figures are missing from the page" in capsys.readouterr().err
