"""Somebody on this machine who receives webhooks."""

import queue
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Self

PATIENCE_S = 60


class Receiver:
    """Answers everything with 200. A context manager."""

    def __init__(self) -> None:
        got: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                got.put((dict(self.headers.items()), body))

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
                return None

        self._got = got
        self._server = HTTPServer(("127.0.0.1", 0), Answering)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/webhooks/gitlab"

    def next(self) -> tuple[dict[str, str], bytes]:
        """Headers and body of the next one that comes."""
        return self._got.get(timeout=PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
