from __future__ import annotations

import queue
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.backends import registry
from trainmark.backends.numpy.backend import NumpyBackend
from trainmark.errors import NotInstalled, UnknownName, Unsupported
from trainmark.execute.protocol import worker_commands
from trainmark.execute.worker import main as worker


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution with three backends: one works, one lacks its framework, one takes
    a built-in name."""
    (tmp_path / "toyframework.py").write_text("class ToyBackend:\n    pass\n")
    folder = tmp_path / "toy-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[trainmark.backends]\n"
        "toy = toyframework:ToyBackend\n"
        "broken = framework_that_is_not_there.backend:Backend\n"
        "numpy = toyframework:ToyBackend\n"
        "[trainmark.others]\n"
        "stranger = toyframework:ToyBackend\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "toyframework", raising=False)
    return tmp_path


def test_an_unknown_backend_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        UnknownName, match=r"unknown backend 'nunpy': expected one of .*numpy.*Did you mean numpy\?"
    ):
        registry.find("nunpy")


@pytest.mark.parametrize("name", ["torch", "numpy"])
def test_a_built_in_backend_says_how_to_install_its_framework(name: str) -> None:
    entry = registry.find(name)
    assert (entry.frameworks, entry.install) == ((name,), f"pip install {name}")


def test_the_best_backend_comes_first_and_numpy_is_always_there() -> None:
    shown = list(registry.entries())
    assert shown.index("torch") < shown.index("numpy")
    assert registry.find("numpy").installed
    assert isinstance(registry.load("numpy"), NumpyBackend)


def test_a_plug_in_of_the_group_is_found_last_and_others_are_not(plugins: Path) -> None:
    names = [name for name in registry.entries() if name != "fake"]  # which is a plug-in itself
    assert names[-2:] == ["toy", "broken"]
    assert "stranger" not in names
    assert registry.find("toy") == registry.Entry(
        "toy", "toyframework:ToyBackend", ("toyframework",), "pip install toy", plugin="toy"
    )


def test_a_plug_in_never_takes_the_place_of_a_built_in_backend(plugins: Path) -> None:
    assert registry.find("numpy").target == "trainmark.backends.numpy.backend:NumpyBackend"


def test_finding_imports_nothing_and_loading_does(plugins: Path) -> None:
    entry = registry.find("toy")
    assert entry.installed
    assert "toyframework" not in sys.modules
    assert type(registry.load("toy")).__name__ == "ToyBackend"
    assert "toyframework" in sys.modules


def test_a_missing_framework_gets_its_install_command(plugins: Path) -> None:
    assert not registry.find("broken").installed
    with pytest.raises(NotInstalled) as caught:
        registry.load("broken")
    assert str(caught.value) == (
        "the backend 'broken' needs framework_that_is_not_there, which is not installed. pip "
        "install toy"
    )


def test_a_plug_in_with_wrong_capabilities_says_what_to_change(plugins: Path) -> None:
    (plugins / "toyframework.py").write_text(
        "from trainmark.backends.base import Capabilities\n"
        "class ToyBackend:\n"
        "    def capabilities(self): return Capabilities('toy', '1', ('idiomatic',), ())\n"
    )
    for request in (worker_commands.Probe("toy"), worker_commands.Examine("toy")):
        with pytest.raises(Unsupported, match=r"'toy' was written for another version.*kinds"):
            worker._carry_out(request, lambda _: None, lambda: None, queue.SimpleQueue(), None)


def test_a_fault_of_a_plug_in_is_not_blamed_on_its_version(plugins: Path) -> None:
    (plugins / "toyframework.py").write_text(
        "class ToyBackend:\n    def capabilities(self): return len(5)\n"
    )
    with pytest.raises(TypeError, match="int"):
        registry.capabilities("toy", registry.load("toy"))


def test_a_plug_in_that_needs_a_module_that_is_gone_says_so(plugins: Path) -> None:
    (plugins / "toyframework.py").write_text("import trainmark.backends.gone\n")
    with pytest.raises(Unsupported) as caught:
        registry.load("toy")
    assert caught.value.found == "No module named 'trainmark.backends.gone'"
    assert caught.value.fix == "Update it, or change it to match trainmark.backends.base."


def test_a_plug_in_without_its_framework_says_which(plugins: Path) -> None:
    (plugins / "toyframework.py").write_text("import framework_that_is_not_there\n")
    with pytest.raises(
        NotInstalled,
        match=r"plug-in 'toy' can't be imported.*framework_that_is_not_there.*pip " r"install",
    ):
        registry.load("toy")


def test_a_missing_known_plug_in_gets_its_install_command() -> None:
    with pytest.raises(
        UnknownName, match=r"unknown backend 'mxnet'.*pip install \./plugins/trainmark-mxnet"
    ):
        registry.find("mxnet")


def test_listing_every_backend_imports_no_framework() -> None:
    program = (
        "import sys; from trainmark.backends import registry; "
        "[entry.installed for entry in registry.entries().values()]; registry.find('torch'); "
        "print(sorted({'torch', 'jax', 'keras', 'tensorflow', 'mxnet'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_recipes_that_are_named_are_there() -> None:
    root = Path(__file__).parents[3]
    for backend in ("torch", "jax", "keras", "keras:torch", "keras:jax"):
        assert (root / registry.recipe(backend)).is_file(), backend
    assert registry.recipe("numpy") == registry.recipe("elsewhere") == ""
