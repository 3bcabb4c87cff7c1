"""A server that only remembers who knocked, and refuses."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class Counter:
    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        headers = self.headers

        class Door(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                headers.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(403)
                self.send_header("content-length", "0")
                self.end_headers()

            do_GET = do_POST  # noqa: N815 - the name is the standard library's

            def log_message(self, *_: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Door)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/mcp"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
