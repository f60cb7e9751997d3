"""Ids are a promise, so they are written down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trainmark
from trainmark.data.locate import Located
from trainmark.errors import DamagedData, DataUnavailable
from trainmark.study.doctor import diagnose, look_at_data

from .facts import GOOD, GPU, on
from .test_doctor import BROKEN

DOCUMENT = Path(trainmark.__file__).parents[2] / "docs" / "doctor.md"


def general(id_: str) -> str:
    """The id as the document writes it."""
    id_ = re.sub(r"^(torch|jax)\.", "FRAMEWORK.", id_)
    id_ = re.sub(r"^(gpu\.[a-z-]+)\.\d+$", r"\1.N", id_)
    id_ = re.sub(r"product\..*", "product.DEVICE", id_)
    return re.sub(r"^data\.(mnist|cifar10)$", "data.DATASET", id_)


def test_the_documented_ids_are_those_of_the_checks(tmp_path: Path) -> None:
    if not DOCUMENT.is_file():
        pytest.skip("an installed package has no docs")
    written = set(re.findall(r"^\| `([^`]+)` \|", DOCUMENT.read_text(), re.MULTILINE))
    several = on(driver=type(GOOD.driver)("580", (13, 0), (GPU, GPU)))
    seen = {check.id for check in diagnose(several)}
    seen |= {check.id for facts, *_ in BROKEN.values() for check in diagnose(facts)}
    seen |= {check.id for check in diagnose(on(host={"gpus_on_bus": {"AMD": 1}}))}
    seen |= {check.id for check in look_at_data(found(tmp_path), (tmp_path,))}
    assert {general(id_) for id_ in seen} == written


def found(directory: Path, complete: bool = True):
    return lambda name: Located(name, directory, "cache", "0" * 64, complete, 60_000, 10_000)


def test_data(tmp_path: Path) -> None:
    def damaged(name: str) -> Located:
        raise DamagedData(
            "train-images is damaged", expected="one digest", found="another", fix="Fetch it again."
        )

    def nowhere(name: str) -> Located:
        raise DataUnavailable("mnist is nowhere")

    def status(locate) -> tuple[str, str]:
        mnist, _, disk = look_at_data(locate, (tmp_path / "not yet",))
        return mnist.status, disk.id

    assert status(found(tmp_path)) == ("PASS", "data.disk-space")
    assert status(found(tmp_path, complete=False))[0] == "WARN"
    assert status(damaged)[0] == "FAIL"
    assert status(nowhere)[0] == "WARN"
