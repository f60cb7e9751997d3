"""A build that goes wrong on this side of the builder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.container.samples import a_builder
from trainmark.container.build import build
from trainmark.container.engine import Engine, Order
from trainmark.errors import BuildFailed, UnwritableFolder


def test_a_builder_that_can_not_be_started_is_not_blamed_on_the_folder(tmp_path: Path) -> None:
    gone = Engine("buildah", str(tmp_path / "gone"))
    with pytest.raises(BuildFailed, match="gone can't be started: found No such file"):
        build(Order(tmp_path, "Dockerfile", "trainmark"), gone, print)


def test_a_log_that_can_not_be_written(tmp_path: Path) -> None:
    a_builder(tmp_path, "buildah")
    order = Order(tmp_path, "Dockerfile", "trainmark", {"BASE": "debian"})
    (tmp_path / "Dockerfile.log").symlink_to("/dev/full")
    with pytest.raises(UnwritableFolder, match="No space left"):
        build(order, Engine("buildah", str(tmp_path / "buildah")), print)
