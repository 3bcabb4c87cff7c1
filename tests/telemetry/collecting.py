"""A collector on loopback that keeps what it is sent: OTLP at /v1/traces, envelopes of Sentry at /api/1/envelope/. It
can be told to fail, and to hold everybody up. And entries to make a run of."""

import gzip
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hummingbird.core.events import EntryRecorded
from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
)
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.usage import TokenUsage

ORDER = "0123456789abcdef0123456789abcdef"
PATIENCE_S = 30


class Collector:
    """`status` is what it answers; while `gate` is shut, it answers nobody."""

    def __init__(self) -> None:
        self.status = 200
        self.gate = threading.Event()
        self.gate.set()
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self._came = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def dsn(self) -> str:
        return f"http://publickey@127.0.0.1:{self._server.server_address[1]}/1"

    @property
    def body(self) -> bytes:
        return b"\n".join(body for _, _, body in self.requests)

    @property
    def spans(self) -> list[Span]:
        return [span for resource in self.resources for scope in resource.scope_spans for span in scope.spans]

    @property
    def resources(self) -> list[Any]:
        found = (ExportTraceServiceRequest.FromString(body) for path, _, body in self.requests if path == "/v1/traces")
        return [resource for request in found for resource in request.resource_spans]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Of Sentry: an envelope is its header, then a header and a body for each item."""
        bodies = [body for path, _, body in self.requests if path == "/api/1/envelope/"]
        lines = [body.split(b"\n") for body in bodies]
        return [json.loads(line[number + 1]) for line in lines for number in range(1, len(line) - 1, 2)]

    def came(self, path: str, headers: dict[str, str], body: bytes) -> int:
        with self._came:
            status = self.status
            self.requests.append((path, headers, body))
            self._came.notify_all()
        self.gate.wait(PATIENCE_S)
        return status

    def wait_for(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.requests) >= count, PATIENCE_S), self.requests

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler_for(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            status = collector.came(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            try:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                pass  # whoever asked does not wait any more

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the server's
            pass

    return Handler


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    try:
        yield collector
    finally:
        collector.close()


def order(order_id: str = ORDER, workflow: str = "analyze-failures", session_id: str = "session-1") -> WorkOrder:
    return WorkOrder(
        id=order_id,
        session_id=session_id,
        cause=OrderCause.PIPELINE,
        workflow=workflow,
        project="acme/widgets",
        mr_iid=7,
    )


def answered(call_id: str, at: float, *, model: str = "anthropic:claude", usd: str | None = "0.25") -> ModelAnswered:
    return ModelAnswered(
        call_id=call_id,
        model=model,
        message=AssistantMessage("The compiler is missing."),
        usage=TokenUsage(fresh=10, cache_read=200, cache_write=30, output=44, reasoning=4),
        cost_usd=None if usd is None else Decimal(usd),
        at=at,
    )


def called(call_id: str, at: float, model: str = "anthropic:claude") -> ModelCalled:
    return ModelCalled(call_id=call_id, model=model, messages=1, at=at)


def a_run(run_id: str = ORDER, at: float = 1_000.0) -> list[JournalEntry]:
    """Begins, fails once, calls a tool, answers and ends, a second for each entry."""
    return [
        RunStarted(run_id=run_id, model="anthropic:claude", at=at),
        called("c1", at + 1),
        ModelFailed(
            call_id="c1",
            model="anthropic:claude",
            happening=ModelFailureKind.UNAVAILABLE,
            sentence="Overloaded.",
            at=at + 2,
        ),
        called("c2", at + 3),
        answered("c2", at + 4),
        ToolStarted(call_id="t1", name="read_log", arguments='{"job": 1}', at=at + 5),
        ToolFinished(call_id="t1", name="read_log", text="gcc: not found", seconds=0.75, at=at + 6),
        called("c3", at + 7),
        answered("c3", at + 8, usd=None),
        RunEnded(run_id=run_id, reason=EndReason.COMPLETED, text="done", answered=True, at=at + 9),
    ]


def mistaken(call_id: str, name: str, at: float = 0.0) -> ToolFinished:
    return ToolFinished(call_id=call_id, name=name, text="There is no such tool.", outcome=ToolOutcome.MISTAKE, at=at)


def see(observer: RunObserver, entries: Sequence[JournalEntry]) -> None:
    for entry in entries:
        observer(EntryRecorded(entry))


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: _value(one.value) for one in span.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)


def named(spans: Sequence[Span], name: str) -> Span:
    (found,) = [span for span in spans if span.name == name]
    return found
