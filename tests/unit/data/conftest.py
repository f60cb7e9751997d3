from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmark.data.locate import Located, locate

from .samples import Sample, digits, pictures
from .site import Site


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own server is asked directly, whatever the machine's environment says."""
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture(scope="session")
def some_digits() -> Sample:
    return digits()


@pytest.fixture(scope="session")
def some_pictures() -> Sample:
    return pictures()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real MNIST and CIFAR-10."""
    folder = os.environ.get("TRAINMARK_DATA")
    if not folder:
        pytest.skip("TRAINMARK_DATA names no folder with the real data")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Located:
    """The real synthetic-digits, drawn once a session: a few seconds."""
    return locate("synthetic-digits", cache=tmp_path_factory.mktemp("cache"))
