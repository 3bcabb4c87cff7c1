"""OpenTelemetry traces (O1): one a run, as the GenAI conventions want them, out of the entries and their own times.

The order's id is the trace's, so a run that goes on in another process goes on in the same trace, and whoever reads an
id in a log finds the trace. What was said is in no span: no message, no argument, no result. Belongs to one event loop.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span

from hummingbird.adapters.telemetry.closing import within
from hummingbird.adapters.telemetry.delivering import Delivering, Overheard, exporter_to
from hummingbird.adapters.telemetry.endpoint import Endpoint
from hummingbird.adapters.telemetry.spans import TracedRun
from hummingbird.domain.errors import MissingSetting
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.telemetry_limits import DELIVERY_REASON_CHARS, TELEMETRY_CLOSE_S, TRACED_RUNS
from hummingbird.domain.text import shortened

_HEX_ID = re.compile(r"[0-9a-f]{32}")


class Traces:
    """Fulfils ports.observer.RunWatcher. Raises MissingSetting for variables of OpenTelemetry that it cannot use."""

    def __init__(self, endpoint: Endpoint, version: str, mask: Callable[[str], str]) -> None:
        self._overheard = Overheard(mask)
        self._overheard.begin()
        self._mask = lru_cache(maxsize=256)(mask)  # the same few names, over and over
        self._ids = _OrdersIds()
        self._open: OrderedDict[str, TracedRun] = OrderedDict()
        try:
            self._provider = TracerProvider(resource=_resource(version), shutdown_on_exit=False, id_generator=self._ids)
            delivering = Delivering(exporter_to(endpoint), self._overheard, endpoint.host)
            self._provider.add_span_processor(BatchSpanProcessor(delivering))
        except (ValueError, RuntimeError) as error:
            self._overheard.end()
            why = shortened(mask(str(error)), DELIVERY_REASON_CHARS)
            raise MissingSetting(f"OpenTelemetry cannot be set up: correct its OTEL_ variables ({why}).") from error
        self._tracer = self._provider.get_tracer("hummingbird", version)

    def __call__(self, order: WorkOrder) -> TracedRun:
        self._forget(order.id)
        run = TracedRun(self._tracer, partial(self._begin, trace_id_of(order.id)), order, self._mask)
        self._open[order.id] = run
        while len(self._open) > TRACED_RUNS:
            self._forget(next(iter(self._open)))
        return run

    def _begin(self, trace_id: int, name: str, attributes: Mapping[str, Any], at_ns: int) -> Span:
        self._ids.trace_id = trace_id
        return self._tracer.start_span(name, Context(), attributes=attributes, start_time=at_ns)

    def _forget(self, order_id: str) -> None:
        """Whatever became of it, it is no longer ours."""
        run = self._open.pop(order_id, None)
        if run is not None and not run.over:
            run.park()

    async def close(self, seconds: float = TELEMETRY_CLOSE_S) -> None:
        """What is not delivered by then is not delivered."""
        for order_id in tuple(self._open):
            self._forget(order_id)
        await within(seconds, self._end)

    def _end(self) -> None:
        """In a thread of its own. Until the library has ended, nobody needs to hear what it says about that."""
        self._provider.shutdown()
        self._overheard.end()


class _OrdersIds(RandomIdGenerator):
    """A span without a parent is that of a run, and the next one's trace is known."""

    trace_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id or super().generate_trace_id()


def trace_id_of(order_id: str) -> int:
    """The order's id itself, which has the length and the looks of one."""
    if not _HEX_ID.fullmatch(order_id) or not int(order_id, 16):
        order_id = sha256(order_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return int(order_id, 16)


def _resource(version: str) -> Resource:
    """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word."""
    ours = Resource.create({"service.name": "hummingbird", "service.version": version})
    return ours.merge(OTELResourceDetector().detect())
