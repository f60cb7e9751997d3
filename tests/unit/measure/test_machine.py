"""Facts of a machine that a record keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from trainmark.measure.machine import describe, identity, made_here
from trainmark.measure.vendor import Driver

NUMBER = "0123456789abcdef0123456789abcdef"


def with_number(root: Path, number: str) -> Path:
    (root / "etc").mkdir()
    (root / "etc/machine-id").write_text(f"{number}\n")
    return root


def test_the_identity_differs_by_machine_and_hides_its_id(tmp_path: Path) -> None:
    found = identity(with_number(tmp_path, NUMBER))
    assert found == "2b074117b51184dd"
    (tmp_path / "etc/machine-id").write_text("f" * 32)
    assert identity(tmp_path) not in (found, None)


@pytest.mark.parametrize("number", ["", "uninitialized", NUMBER[:-1]])
def test_a_machine_without_a_number_has_none(number: str, tmp_path: Path) -> None:
    assert identity(with_number(tmp_path, number)) is None
    assert identity(tmp_path / "nowhere") is None


def test_labels_are_kept(tmp_path: Path) -> None:
    assert describe(0.0, Driver(), tmp_path, {"instance": "g5.xlarge"}).labels == {
        "instance": "g5.xlarge"
    }


def test_machines_of_the_same_name_are_distinguished(tmp_path: Path) -> None:
    here = describe(0.0, Driver(), with_number(tmp_path, NUMBER))
    assert made_here(here, tmp_path)
    # a record from before machines were recorded
    assert made_here(structs.replace(here, identity=None, cpu=None), tmp_path)
    for other in ({"name": "elsewhere"}, {"cpu": "EPYC"}, {"identity": "0" * 16}):
        assert not made_here(structs.replace(here, **other), tmp_path)
