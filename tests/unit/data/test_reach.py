from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import pytest

from trainmark.data.reach import Endpoint, Probes, endpoint

from .site import Site


def test_a_host_that_answers(site: Site) -> None:
    Probes([site.url], 2).start().wait(site.url)


def test_a_host_that_refuses() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # taken, but nobody listens
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        with pytest.raises(ConnectionRefusedError):
            Probes([url], 2).start().wait(url)


def test_a_name_that_is_no_name() -> None:
    url = f"http://{'x' * 70}.invalid/"  # IDNA allows 63 letters between dots
    with pytest.raises(OSError):
        Probes([url], 2).start().wait(url)


def test_all_hosts_share_one_deadline() -> None:
    release = threading.Event()

    def blocks(to: Endpoint, seconds: float) -> None:  # as getaddrinfo does without a network, timeout or not
        release.wait(10)

    urls = [f"http://host{number}.invalid/" for number in range(6)]
    begin = time.monotonic()
    probes = Probes(urls, 0.3, blocks).start()
    for url in urls:
        with pytest.raises(TimeoutError, match="no answer from host"):
            probes.wait(url)
    assert time.monotonic() - begin < 1
    release.set()


def test_an_answer_is_not_kept_waiting_by_others(site: Site) -> None:
    release = threading.Event()

    def slow_elsewhere(to: Endpoint, seconds: float) -> None:
        if to[0] != "127.0.0.1":
            release.wait(10)

    begin = time.monotonic()
    Probes(["http://slow.invalid/", site.url], 5, slow_elsewhere).start().wait(site.url)
    assert time.monotonic() - begin < 1
    release.set()


def test_a_blocked_probe_does_not_keep_the_interpreter_alive() -> None:
    code = (
        "import time; from trainmark.data.reach import Probes\n"
        "Probes(['http://host.invalid/'], 0.1, lambda to, seconds: time.sleep(60)).start()"
    )
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.org/a", ("example.org", 80)),
        ("https://example.org/a", ("example.org", 443)),
        ("http://example.org:8080/a", ("example.org", 8080)),
        ("https://cache.julialang.org/http://yann.lecun.com/", ("cache.julialang.org", 443)),
    ],
)
def test_endpoint(url: str, expected: Endpoint) -> None:
    assert endpoint(url) == expected


def test_behind_a_proxy_it_is_the_proxy_that_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert endpoint("https://example.org/a") == ("proxy.example", 3128)
    assert endpoint("https://inside.example/a") == ("inside.example", 443)
    assert endpoint("http://example.org/a") == ("example.org", 80)
