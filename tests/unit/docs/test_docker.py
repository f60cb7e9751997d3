"""The Dockerfile by its linter, the compose file by its parser; tests/end_to_end/test_container.py
builds the image."""

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


@pytest.mark.parametrize(("index", "code"), [("unset", 1), ("", 0), ("https://example.org/cpu", 0)])
def test_the_cpu_image_is_not_built_without_its_index(index: str, code: int) -> None:
    """Otherwise ``docker compose run cpu`` would download the CUDA build."""
    steps = (FOLDER / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    (check,) = (step.removeprefix("RUN ") for step in steps if step.startswith("RUN if"))
    done = subprocess.run(
        ["sh", "-c", check], env={"TORCH_INDEX": index}, capture_output=True, text=True
    )
    assert done.returncode == code
    assert ("Set TRAINMARK_TORCH_INDEX" in done.stderr) == bool(code)


def test_both_services_share_everything_but_the_device() -> None:
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    assert services["cpu"]["volumes"] == services["gpu"]["volumes"]
    assert (
        services["gpu"]["deploy"]["resources"]["reservations"]["devices"][0]["driver"] == "nvidia"
    )
    assert services["cpu"]["build"]["args"]["TORCH_INDEX"] == "${TRAINMARK_TORCH_INDEX:-unset}"
    assert {service["build"]["dockerfile"] for service in services.values()} == {
        "docker/Dockerfile"
    }
