"""The Dockerfile by its linter, the compose file by its parser; tests/end_to_end/test_container.py builds the image."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[3] / "docker"


def test_the_dockerfile_is_clean() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run(["hadolint", str(FOLDER / "Dockerfile")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_both_services_share_everything_but_the_device() -> None:
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    assert services["cpu"]["volumes"] == services["gpu"]["volumes"]
    assert services["gpu"]["deploy"]["resources"]["reservations"]["devices"][0]["driver"] == "nvidia"
    assert {service["build"]["dockerfile"] for service in services.values()} == {"docker/Dockerfile"}
