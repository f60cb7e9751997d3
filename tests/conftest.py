"""Fixtures that several folders of tests need."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PLUGINS = str(Path(__file__).parent / "plugins" / "fake")
"""The fake backend is a plug-in: here, and in every process that a test starts."""
sys.path.insert(0, PLUGINS)
os.environ.pop("COLUMNS", None)  # some plug-ins of pytest set it in their workers
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (PLUGINS, os.environ.get("PYTHONPATH"))))

# The workers of pytest share the cores: several threads of each would mostly wait for each other.
# The processes that tests start choose their own number.
with pytest.MonkeyPatch.context() as patch:
    patch.setenv("OPENBLAS_NUM_THREADS", "1")
    import numpy  # noqa: F401  (it reads the variable)

from trainmark.data.locate import Located, locate  # noqa: E402

LONG = ("tests/unit/inject/test_seen", "tests/unit/inject/test_hostile_scripts")
"""Beginnings of the files of small tests that take longest."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files, so that all workers of pytest end at about the same time."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


# A process in the background is often started with these signals ignored, and so would be all
# processes that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(ignored, signal.SIG_DFL)

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # a GPU machine may have pytest alone, which is enough for tests/gpu
    pass
else:
    # By default, an example that takes 0.2 s fails, which depends on the machine more than on the
    # code.
    settings.register_profile(
        "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any machine")


NULL_DEVICE_REPLACED = (
    f"{os.devnull} is no longer a character device: a test, or another program, has replaced it "
    "for the whole machine. "
    f"Put it back as root: rm {os.devnull}; mknod -m 666 {os.devnull} c 1 3"
)


def is_null_device_intact() -> bool:
    """Whether the null device is a device. Root can replace it with a file, which makes many
    programs fail oddly."""
    return stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.fixture(scope="session", autouse=True)
def _null_device_stays_a_device() -> Iterator[None]:
    """Check it in each process that runs tests; with pytest-xdist these are its workers."""
    assert is_null_device_intact(), NULL_DEVICE_REPLACED
    yield
    assert is_null_device_intact(), NULL_DEVICE_REPLACED


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Check it after the last worker of pytest-xdist, too: the fixture does not run in the
    controller."""
    if not is_null_device_intact():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print at the end of the output why the run has failed."""
    if not is_null_device_intact():
        terminalreporter.section("the null device", sep="=", red=True)
        terminalreporter.line(NULL_DEVICE_REPLACED)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real MNIST and part of CIFAR-10."""
    folder = os.environ.get("TRAINMARK_DATA")
    if not folder:
        pytest.skip("TRAINMARK_DATA names no folder with the real data")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the command line, as XDG_CACHE_HOME, which all workers of this session share."""
    own = tmp_path_factory.getbasetemp()
    home = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache-home"
    home.mkdir(exist_ok=True)
    return home


@pytest.fixture(scope="session")
def drawn(cache_home: Path) -> Located:
    """synthetic-digits, drawn by the first worker that needs them, which takes a few seconds."""
    return locate("synthetic-digits", cache=cache_home / "trainmark")
