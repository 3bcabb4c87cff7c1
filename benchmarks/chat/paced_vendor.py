"""A vendor that answers at a steady pace, for as long as it is asked to: 200 deltas a second, in the dialect of
Anthropic's messages. In the process of the benchmark, so that the agent's own is not disturbed by it."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAUSE_S = 0.005
LONG_S, SHORT_S = 600.0, 0.4
ASKS_FOR_LONG = "slow"
_USAGE = {"input_tokens": 900, "output_tokens": 40}


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        asked = json.dumps(json.loads(body)["messages"][-1])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        with suppress(OSError):  # it was interrupted
            for event in _events(LONG_S if ASKS_FOR_LONG in asked else SHORT_S):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def _events(seconds: float) -> Iterator[dict[str, Any]]:
    opened = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": []}
    yield {"type": "message_start", "message": {**opened, "stop_reason": None, "usage": _USAGE}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        words = f"word{number} " + ("\n\n" if number % 40 == 39 else "")
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}}
        number += 1
        time.sleep(PAUSE_S)
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": _USAGE}
    yield {"type": "message_stop"}


@contextmanager
def paced_vendor() -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
