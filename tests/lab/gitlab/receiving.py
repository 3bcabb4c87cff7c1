"""Somebody to whom webhooks are sent."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class Receiver:
    """Keeps what arrives, and answers with the `statuses` in turn, then with 200."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        outer = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((dict(self.headers.items()), body))
                self.send_response(outer.statuses.pop(0) if outer.statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
                return None

        self.server = HTTPServer(("127.0.0.1", 0), Answering)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/hook?x=1"

    def events(self) -> list[str]:
        return [headers["X-Gitlab-Event"] for headers, _body in self.got]

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
