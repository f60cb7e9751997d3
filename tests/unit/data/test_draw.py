from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from trainmark.data.locate import locate
from trainmark.errors import DataUnavailable

from .samples import Sample, digits

CHILD = """
import pickle, sys
from pathlib import Path
from trainmark.data.locate import locate
known = pickle.loads(Path(sys.argv[1]).read_bytes())
print("ready", flush=True)
sys.stdin.readline()
print(locate(known.name, cache=Path(sys.argv[2]), known_datasets={known.name: known}).source)
"""


def draw(sample: Sample, cache: Path) -> str:
    return locate(
        sample.known.name, cache=cache, known_datasets={sample.known.name: sample.known}
    ).source


def test_drawn_once_then_from_the_cache(some_digits: Sample, tmp_path: Path) -> None:
    assert draw(some_digits, tmp_path / "cache") == "drawn"
    assert draw(some_digits, tmp_path / "cache") == "cache"
    for name, content in some_digits.contents.items():
        assert (tmp_path / "cache" / "digits" / name).read_bytes() == content


@pytest.mark.parametrize("damage", ["a bit", "the end", "everything", "the file"])
def test_a_damaged_file_is_drawn_again(some_digits: Sample, tmp_path: Path, damage: str) -> None:
    draw(some_digits, tmp_path)
    path = tmp_path / "digits" / "train-images-idx3-ubyte"
    content = path.read_bytes()
    if damage == "a bit":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "the end":
        path.write_bytes(content[:-1])
    elif damage == "everything":
        path.write_bytes(b"")
    else:
        path.unlink()
    assert draw(some_digits, tmp_path) == "drawn"
    assert path.read_bytes() == content


def test_progress_counts_bytes_up_to_the_total(some_digits: Sample, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None, str]] = []
    known = {"digits": some_digits.known}
    locate(
        "digits", cache=tmp_path, known_datasets=known, progress=lambda *facts: seen.append(facts)
    )
    assert seen == [(60 * 784, 80 * 784, "digits"), (80 * 784, 80 * 784, "digits")]


def test_digits_with_another_checksum_are_an_error_and_not_kept(
    some_digits: Sample, tmp_path: Path
) -> None:
    first, *others = some_digits.known.files
    known = replace(some_digits.known, files=(replace(first, sha256="0" * 64), *others))
    with pytest.raises(DataUnavailable, match="generates a different train-images-idx3-ubyte"):
        locate("digits", cache=tmp_path, known_datasets={"digits": known})
    assert not (tmp_path / "digits" / first.name).exists()


def test_two_processes_at_once(tmp_path: Path) -> None:
    sample = digits(train=8_000, test=1_000)
    (tmp_path / "known").write_bytes(pickle.dumps(sample.known))
    command = [sys.executable, "-c", CHILD, str(tmp_path / "known"), str(tmp_path / "cache")]
    children = [subprocess.Popen(command, stdin=-1, stdout=-1, text=True) for _ in range(2)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    sources = sorted(child.communicate(timeout=120)[0].strip() for child in children)
    assert sources == ["cache", "drawn"]  # the second waited for the first
    assert not list((tmp_path / "cache").rglob("*.part"))
    assert draw(sample, tmp_path / "cache") == "cache"
