"""Asking metadata services, each of them a real server on 127.0.0.1."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from trainmark.measure.cloud import MOST_BYTES, SERVICES, ask
from trainmark.record.record import Cloud

Answer = Callable[[BaseHTTPRequestHandler], None]
BY_NAME = {service.provider: service for service in SERVICES}
LOGIN_PAGE = "<html><body>Welcome to Grand Hotel. projects/1/machineTypes/free a.b</body></html>"


class Metadata:
    """A server that answers by ``page``, and keeps what it was asked."""

    def __init__(self, page: Answer) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.closing = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def answer(handler) -> None:
                self.asked.append((handler.command, handler.path, dict(handler.headers)))
                page(handler)

            do_GET = do_PUT = answer

            def log_message(handler, format: str, *args: Any) -> None:
                """Tests are silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Metadata]]:
    running: list[Metadata] = []

    def start(page: Answer) -> Metadata:
        running.append(Metadata(page))
        return running[-1]

    yield start
    for each in running:
        each.closing.set()
        each.server.shutdown()
        each.server.server_close()


def send(handler: BaseHTTPRequestHandler, text: str, status: int = 200, **headers: str) -> None:
    body = text.encode()
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def tokens(prefix: str, answers: dict[str, str]) -> Answer:
    """A service that wants a token first, and gives nothing without."""

    def page(handler: BaseHTTPRequestHandler) -> None:
        if (
            handler.command == "PUT"
            and handler.path == "/latest/api/token"
            and handler.headers[f"{prefix}-ttl-seconds"]
        ):
            send(handler, "AQAEA-token==")
        elif handler.command == "GET" and handler.headers[prefix] == "AQAEA-token==" and handler.path in answers:
            send(handler, answers[handler.path])
        else:
            send(handler, "<?xml version='1.0'?><title>401</title>", 401)

    return page


def keyed(name: str, value: str, answers: dict[str, str], **signed: str) -> Answer:
    """A service that wants a header with each question."""

    def page(handler: BaseHTTPRequestHandler) -> None:
        known = handler.headers[name] == value and handler.command == "GET" and handler.path in answers
        send(handler, answers[handler.path] if known else "no", 200 if known else 403, **signed)

    return page


_AZURE = "/metadata/instance/compute/{}?api-version=2021-02-01&format=text"
_GOOGLE = "/computeMetadata/v1/instance/"
TRUE = {
    "aws": (
        tokens(
            "X-aws-ec2-metadata-token",
            {"/latest/meta-data/instance-type": "g4dn.xlarge", "/latest/meta-data/placement/region": "eu-west-1"},
        ),
        Cloud("aws", "g4dn.xlarge", "eu-west-1"),
    ),
    "azure": (
        keyed("Metadata", "true", {_AZURE.format("vmSize"): "Standard_NC6s_v3", _AZURE.format("location"): "eastus2"}),
        Cloud("azure", "Standard_NC6s_v3", "eastus2"),
    ),
    "google": (
        keyed(
            "Metadata-Flavor",
            "Google",
            {
                f"{_GOOGLE}machine-type": "projects/123456789/machineTypes/a2-highgpu-1g",
                f"{_GOOGLE}zone": "projects/123456789/zones/us-central1-f",
            },
            Metadata_Flavor="Google",
        ),
        Cloud("google", "a2-highgpu-1g", "us-central1"),
    ),
    "oracle": (
        keyed(
            "Authorization",
            "Bearer Oracle",
            {
                "/opc/v2/instance/shape": "VM.GPU.A10.1",
                "/opc/v2/instance/canonicalRegionName": "us-phoenix-1",
            },
        ),
        Cloud("oracle", "VM.GPU.A10.1", "us-phoenix-1"),
    ),
    "alibaba": (
        tokens(
            "X-aliyun-ecs-metadata-token",
            {
                "/latest/meta-data/instance/instance-type": "ecs.gn6i-c4g1.xlarge",
                "/latest/meta-data/region-id": "cn-hangzhou",
            },
        ),
        Cloud("alibaba", "ecs.gn6i-c4g1.xlarge", "cn-hangzhou"),
    ),
}


@pytest.mark.parametrize("provider", BY_NAME)
def test_on_each_cloud_all_are_asked_and_one_answers(
    provider: str, serve: Callable[[Answer], Metadata], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # nothing listens there: who asks it, hears nothing
    page, expected = TRUE[provider]
    server = serve(page)
    heard = ask([dataclasses.replace(each, address=server.url) for each in SERVICES], 5.0)
    assert heard.cloud == expected
    assert expected.title in heard.said


def page_of(text: str, **headers: str) -> Answer:
    return lambda handler: send(handler, text, **headers)


@pytest.mark.parametrize(
    "page",
    [
        page_of(LOGIN_PAGE, Content_Type="text/html", Metadata_Flavor="Google"),
        page_of("OK", Metadata_Flavor="Google"),
        page_of("", Metadata_Flavor="Google"),
        page_of("Standard_NC6\nX-Injected: yes"),
        page_of("Standard_NC6\x1b[31m"),
        lambda handler: send(handler, "Standard_NC6", 500),
        page_of("Standard_" + "x" * 2 * MOST_BYTES),
        page_of("Standard_Ü"),
        lambda handler: handler.wfile.write(b"no HTTP at all\r\n\r\n"),
        lambda handler: handler.close_connection,
    ],
    ids=["login page", "OK", "empty", "two lines", "escape", "500", "oversize", "no ASCII", "no HTTP", "hangs up"],
)
def test_what_no_provider_would_answer_is_not_believed(page: Answer, serve: Callable[[Answer], Metadata]) -> None:
    server = serve(page)
    heard = ask([dataclasses.replace(each, address=server.url) for each in SERVICES], 5.0)
    assert heard.cloud is None
    assert "no metadata service of a cloud answered within 5 s (aws, azure, google" in heard.said


def test_where_several_answer_none_is_believed(serve: Callable[[Answer], Metadata]) -> None:
    services = [dataclasses.replace(BY_NAME[name], address=serve(TRUE[name][0]).url) for name in ("aws", "azure")]
    heard = ask(services, 5.0)
    assert heard.cloud is None
    assert "several metadata services answered (" in heard.said


def test_an_answer_without_googles_signature_is_not_googles(serve: Callable[[Answer], Metadata]) -> None:
    server = serve(page_of("projects/1/machineTypes/a2-highgpu-1g"))
    assert ask([dataclasses.replace(BY_NAME["google"], address=server.url)], 5.0).cloud is None


def test_a_redirect_is_not_followed(serve: Callable[[Answer], Metadata]) -> None:
    elsewhere = serve(TRUE["azure"][0])
    server = serve(lambda handler: send(handler, "", 302, Location=elsewhere.url + handler.path))
    assert ask([dataclasses.replace(BY_NAME["azure"], address=server.url)], 5.0).cloud is None
    assert server.asked
    assert not elsewhere.asked


def test_version_1_is_not_asked_where_there_is_no_token(serve: Callable[[Answer], Metadata]) -> None:
    """A service of EC2's first kind answers without one; nothing is asked of it."""
    server = serve(lambda handler: send(handler, "g4dn.xlarge", 404 if handler.command == "PUT" else 200))
    assert ask([dataclasses.replace(BY_NAME["aws"], address=server.url)], 5.0).cloud is None
    assert [asked[0] for asked in server.asked] == ["PUT"]


def test_nothing_but_type_and_region_is_asked_for(serve: Callable[[Answer], Metadata]) -> None:
    server = serve(TRUE["aws"][0])
    ask([dataclasses.replace(BY_NAME["aws"], address=server.url)], 5.0)
    assert [asked[1] for asked in server.asked] == [
        "/latest/api/token",
        "/latest/meta-data/instance-type",
        "/latest/meta-data/placement/region",
    ]
    assert server.asked[0][2]["X-aws-ec2-metadata-token-ttl-seconds"] == "60"


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "drips"])
def test_all_have_one_deadline_together(drips: bool, serve: Callable[[Answer], Metadata]) -> None:
    """Those that say nothing, or a byte now and then, cost no more than the deadline, however many they are."""

    def page(handler: BaseHTTPRequestHandler) -> None:
        while not server.closing.wait(0.05):
            if drips:
                try:
                    handler.wfile.write(b"H")
                except OSError:
                    return

    server = serve(page)
    start = time.monotonic()
    heard = ask([dataclasses.replace(each, address=server.url) for each in SERVICES], 0.3)
    assert heard.cloud is None
    assert 0.25 < time.monotonic() - start < 3.0
    assert len(server.asked) == len(SERVICES)


def test_the_type_is_kept_where_the_region_comes_too_late(serve: Callable[[Answer], Metadata]) -> None:
    right = TRUE["azure"][0]

    def page(handler: BaseHTTPRequestHandler) -> None:
        if "location" in handler.path:
            server.closing.wait(10)
        else:
            right(handler)

    server = serve(page)
    heard = ask([dataclasses.replace(BY_NAME["azure"], address=server.url)], 0.5)
    assert heard.cloud == Cloud("azure", "Standard_NC6s_v3")


def test_addresses_are_numbers() -> None:
    """A name would go to whatever resolver the network offers."""
    assert {service.address for service in SERVICES} == {"http://169.254.169.254", "http://100.100.100.200"}
