"""The desk where every request arrives: key, JSON, rules, script, answer, in the order in which a vendor looks.

It writes down what it saw before it answers, so that a client that has its answer finds the record complete.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.standins.vendors.access import admit_key
from tests.standins.vendors.faults import GARBAGE, Dropped, Slow, Streamed, Whole, cut_frames
from tests.standins.vendors.recording import Recorded
from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.script import DepartedError, Fault, Script, Turn
from tests.standins.vendors.surfaces import Answer, Asked, Numbers, Pending, Surface, SurfaceName


@dataclass(frozen=True, slots=True)
class Window:
    """One surface at one address: how to find the model and the wish to stream in a request for it."""

    name: SurfaceName
    surface: Surface
    model: Callable[[Request, Raw], str]
    streams: Callable[[Request, Raw], bool]


class Desk:
    def __init__(self, script: Script, numbers: Numbers, keys: frozenset[str] | None) -> None:
        self._script = script
        self._numbers = numbers
        self.keys = keys
        self._records: list[Recorded] = []
        self._lock = threading.Lock()

    @property
    def records(self) -> list[Recorded]:
        with self._lock:
            return list(self._records)

    async def serve(self, window: Window, request: Request) -> Response:
        raw = await request.body()
        visit = _Visit(self, window, request.url.path, dict(request.headers), _readable(raw))
        try:
            admit_key(window.name, visit.headers, request.query_params.get("key", ""), self.keys)
            body = _object(window.name, raw)
            streams = window.streams(request, body)
            asked = Asked(window.name, visit.path, window.model(request, body), visit.headers, body, streams)
            pending = window.surface.admit(asked)
            ready = pending.unscripted()
            step = None if ready else self._script.next(body)
        except Refusal as refusal:
            return visit.refuse(refusal)
        except DepartedError as departure:
            text = f"the conversation departed from the script: {departure}"
            return visit.refuse(Refusal(500, "api_error", text, headers={"x-should-retry": "false"}))
        if isinstance(step, Fault):
            return visit.fail(pending, step, streams)
        return visit.answer(pending, ready or pending.answer(step or Turn()), streams)

    def write_down(self, record: Recorded) -> None:
        with self._lock:
            self._records.append(record)

    def headers(self) -> dict[str, str]:
        name = self._numbers.take("req_")
        return {"request-id": name, "x-request-id": name}


@dataclass(frozen=True, slots=True)
class _Visit:
    """One request at the desk, until it is answered."""

    desk: Desk
    window: Window
    path: str
    headers: Mapping[str, str]
    body: Any

    def refuse(self, refusal: Refusal) -> Response:
        self._record(refusal.status, None, refusal.message)
        body = self.window.surface.refused(refusal)
        return Whole(body, refusal.status, {**self.desk.headers(), **refusal.headers})

    def answer(self, pending: Pending, answer: Answer, streams: bool) -> Response:
        self._record(200, answer.usage)
        pending.started()
        if streams:
            return Streamed(answer.frames, self.desk.headers())
        return Whole(answer.body, 200, self.desk.headers())

    def fail(self, pending: Pending, fault: Fault, streams: bool) -> Response:
        if fault.kind == "status":
            return self.refuse(_with_headers(self.window.surface.failed(fault), fault))
        if fault.kind == "drop":
            self._record(0, None)
            return Dropped()
        if fault.kind == "garbage":
            self._record(200, None)
            return Whole(GARBAGE.decode(), 200, self.desk.headers())
        if fault.kind == "stall" and not fault.after:
            self._record(200, None)
            return Streamed((), self.desk.headers(), ending="stall")
        answer = pending.answer(fault.turn)
        if fault.kind == "slow":
            return Slow(self.answer(pending, answer, streams), fault.delay_s, fault.until)
        return self._break_off(pending, answer, fault, streams)

    def _break_off(self, pending: Pending, answer: Answer, fault: Fault, streams: bool) -> Response:
        """An answer that begins well: it is billed, and what it wrote is in the cache."""
        self._record(200, answer.usage)
        pending.started()
        if not streams:
            body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            frames: list[bytes] = [body[: len(body) // 2].encode()]
            kind = "application/json"
            if fault.kind == "error_in_stream":
                return Streamed([_error_json(self.window.surface, fault)], self.desk.headers(), kind=kind)
            ending = "stall" if fault.kind == "stall" else "whole" if fault.clean else "cut"
            return Streamed(frames, self.desk.headers(), ending=ending, kind=kind)
        if fault.kind == "stall":
            return Streamed(answer.frames[: fault.after], self.desk.headers(), ending="stall")
        if fault.kind == "error_in_stream":
            before = answer.frames[: 2 if fault.after is None else fault.after]
            return Streamed([*before, self.window.surface.error_frame(fault)], self.desk.headers())
        ending = "whole" if fault.clean else "cut"
        return Streamed(cut_frames(answer.frames, fault.after), self.desk.headers(), ending=ending)

    def _record(self, status: int, usage: Raw | None, refusal: str | None = None) -> None:
        record = Recorded(self.window.name, self.path, self.headers, self.body, status, usage, refusal)
        self.desk.write_down(record)


def _with_headers(refusal: Refusal, fault: Fault) -> Refusal:
    if fault.retry_after is not None:
        refusal.headers["retry-after"] = fault.retry_after
    if fault.should_retry is not None:
        refusal.headers["x-should-retry"] = "true" if fault.should_retry else "false"
    return refusal


def _error_json(surface: Surface, fault: Fault) -> bytes:
    body = surface.refused(surface.failed(fault))
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def _readable(raw: bytes) -> Any:
    """The body for the record: parsed if it can be, else as text."""
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def _object(surface: SurfaceName, raw: bytes) -> Raw:
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    if surface in {"gemini", "vertex-gemini"}:
        raise Refusal(400, "INVALID_ARGUMENT", "Invalid JSON payload received. Expected an object.")
    text = "The request body is not valid JSON."
    if surface.startswith("openai"):
        text = "We could not parse the JSON body of your request. The API expects a JSON payload."
    raise Refusal(400, "invalid_request_error", text)
