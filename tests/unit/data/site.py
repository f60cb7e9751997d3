"""A real web server on 127.0.0.1 that behaves as badly as asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Page = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers each path with the page that the site has for it."""

    site: Site

    def do_GET(self) -> None:
        self.site.requests.append(self.path)
        page = self.site.pages.get(self.path)
        if page is None:
            self.send_error(404)
        else:
            page(self)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: tests are silent."""

    def start(
        self,
        status: int,
        length: int | None,
        kind: str = "application/octet-stream",
        **headers: str,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


class Site:
    """The server; ``pages`` may be changed at any time, ``requests`` keeps each path."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[str] = []
        self.closing = threading.Event()
        handler = type("SiteHandler", (Handler,), {"site": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def stalling(self, content: bytes, sent: int) -> Page:
        """Sends the first bytes, then nothing until the test is over."""

        def page(handler: Handler) -> None:
            handler.start(200, len(content))
            handler.wfile.write(content[:sent])
            handler.wfile.flush()
            self.closing.wait(100)

        return page


def serving(content: bytes) -> Page:
    """Sends everything."""

    def page(handler: Handler) -> None:
        handler.start(200, len(content))
        handler.wfile.write(content)

    return page


def hanging_up(content: bytes, sent: int) -> Page:
    """Promises everything, sends a part and closes."""

    def page(handler: Handler) -> None:
        handler.start(200, len(content))
        handler.wfile.write(content[:sent])
        handler.close_connection = True

    return page


def web_page(
    kind: str = "text/html; charset=utf-8", start: bytes = b"\n<!DOCTYPE html><html>"
) -> Page:
    """A login page with status 200, as captive networks serve it for everything."""
    content = start + b"<body>Please log in</body></html>"

    def page(handler: Handler) -> None:
        handler.start(200, len(content), kind)
        handler.wfile.write(content)

    return page


def endless() -> Page:
    """Sends zeros without saying how many, until the other side hangs up."""

    def page(handler: Handler) -> None:
        handler.start(200, None)
        try:
            while True:
                handler.wfile.write(bytes(1 << 16))
        except OSError:
            handler.close_connection = True

    return page
