"""Faults happen to the requests that they are planned for, as often as they are planned, and as they are said to."""

import threading
from collections.abc import Iterator

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from hummingbird.lab.fault_injection import (
    DropConnection,
    Fault,
    FaultGate,
    FaultMiddleware,
    FaultResponse,
    Faults,
    Hold,
    RawResponse,
    ReceivedRequest,
    Redirect,
    Slow,
    StreamedBody,
    Truncate,
)
from hummingbird.lab.http_server import LabServer

TEXT = "0123456789" * 100


class Stage:
    """`written`: the bodies of the requests that the application carried out."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.requests: list[ReceivedRequest] = []
        self.written: list[bytes] = []
        self.serving = LabServer({"one": FaultMiddleware("one", self.application, self.faults, self.requests)})

    async def application(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.written.append(await Request(scope, receive).body())
        await PlainTextResponse(TEXT if scope["path"] != "/other" else "other")(scope, receive, send)

    def post(self, body: bytes) -> httpx2.Response:
        return httpx2.post(self.serving.url("one") + "/a", content=body, verify=False, trust_env=False)

    def get(self, path: str = "/a", **options: str) -> httpx2.Response:
        return httpx2.get(self.serving.url("one") + path, params=options, verify=False, trust_env=False)


@pytest.fixture
def stage() -> Iterator[Stage]:
    found = Stage()
    with found.serving:
        yield found


def test_an_answer_replaces_the_applications_as_often_as_planned(stage: Stage) -> None:
    stage.faults.plan("/a", FaultResponse(503, {"why": "busy"}, {"Retry-After": "2"}), times=2)
    codes = [stage.get(path).status_code for path in ("/other", "/a", "/a", "/a")]
    assert codes == [200, 503, 503, 200]
    assert stage.faults.unused_faults == []


def test_an_answer_may_be_text_bytes_or_json(stage: Stage) -> None:
    for body in ("words", b"\x00\x01", {"a": [1]}):
        stage.faults.plan("*", FaultResponse(200, body))
    answers = [stage.get() for _ in range(3)]
    assert (answers[0].text, answers[1].content, answers[2].json()) == ("words", b"\x00\x01", {"a": [1]})


def test_a_fault_can_wait_for_later_requests_and_for_a_query(stage: Stage) -> None:
    stage.faults.plan("/a", FaultResponse(500), after=1, query="*continue=*")
    queries: tuple[dict[str, str], ...] = ({}, {"continue": "x y"}, {}, {"continue": "x"})
    assert [stage.get(**query).status_code for query in queries] == [200, 200, 200, 500]


def test_a_fault_can_wait_for_a_method(stage: Stage) -> None:
    stage.faults.plan("*", FaultResponse(500), method="POST")
    assert [stage.get().status_code, stage.post(b"x").status_code, stage.post(b"x").status_code] == [200, 500, 200]


def test_headers_of_an_answer_replace_its_own_however_they_are_spelled(stage: Stage) -> None:
    stage.faults.plan("*", FaultResponse(502, "<html/>", {"Content-Type": "text/html"}))
    assert stage.get().headers.get_list("content-type") == ["text/html"]


def test_raw_bytes_may_say_what_asgi_cannot(stage: Stage) -> None:
    stage.faults.plan("*", RawResponse(b"HTTP/1.1 409 Resource lock\r\nContent-Length: 2\r\n\r\nno"))
    answer = stage.get()
    assert (answer.status_code, answer.reason_phrase, answer.text) == (409, "Resource lock", "no")
    assert stage.written == []


@pytest.mark.parametrize("after_write", [False, True])
@pytest.mark.parametrize("fault", [FaultResponse(502), Redirect("/b"), StreamedBody(lambda: [b"page"], status=502)])
def test_an_answer_can_be_lost_after_the_request_was_carried_out(stage: Stage, fault: Fault, after_write: bool) -> None:
    stage.faults.plan("*", fault, after_write=after_write)
    assert stage.post(b"words").status_code in (302, 502)
    assert stage.written == ([b"words"] if after_write else [])


def test_a_connection_can_be_dropped_after_the_request_was_carried_out(stage: Stage) -> None:
    stage.faults.plan("*", DropConnection(), times=2, after_write=True)
    for _ in range(2):
        with pytest.raises(httpx2.TransportError):
            stage.post(b"words")
    assert stage.written == [b"words", b"words"]


@pytest.mark.parametrize("after_write", [False, True])
@pytest.mark.parametrize("fault", [Slow(0.001), Truncate(100_000)])
def test_a_fault_that_ends_in_the_applications_answer_has_it_carry_out_the_request_once(
    stage: Stage, fault: Fault, after_write: bool
) -> None:
    stage.faults.plan("*", fault, after_write=after_write)
    assert stage.post(b"words").text == TEXT
    assert stage.written == [b"words"]


@pytest.mark.parametrize("after_write", [False, True])
def test_what_a_held_request_says_is_heard(stage: Stage, after_write: bool) -> None:
    gate, found = FaultGate(), list[str]()
    stage.faults.plan("*", Hold(gate), after_write=after_write)
    asking = threading.Thread(target=lambda: found.append(stage.post(b"words").text))
    asking.start()
    gate.reached.wait()
    assert stage.written == ([b"words"] if after_write else [])
    gate.open()
    asking.join()
    assert (found, stage.written) == ([TEXT], [b"words"])


def test_what_was_not_used_is_told(stage: Stage) -> None:
    fault = FaultResponse(500)
    stage.faults.plan("/never", fault, times=2)
    stage.get()
    assert stage.faults.unused_faults == [fault, fault]


def test_a_dropped_connection_has_no_answer(stage: Stage) -> None:
    stage.faults.plan("*", DropConnection())
    with pytest.raises(httpx2.TransportError):
        stage.get()
    assert stage.get().text == TEXT


def test_a_truncated_answer_breaks_after_so_many_bytes(stage: Stage) -> None:
    stage.faults.plan("*", Truncate(17))
    came: list[bytes] = []
    with (
        httpx2.stream("GET", stage.serving.url("one"), verify=False, trust_env=False) as answer,
        pytest.raises(httpx2.TransportError),
    ):
        came.extend(answer.iter_raw())
    assert b"".join(came) == TEXT[:17].encode()


def test_an_answer_shorter_than_its_cut_is_whole(stage: Stage) -> None:
    stage.faults.plan("*", Truncate(100_000))
    assert stage.get().text == TEXT


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/", "file:///etc/passwd", "/a", "//elsewhere.invalid/"])
def test_a_redirect_goes_wherever_it_is_told(stage: Stage, url: str) -> None:
    stage.faults.plan("*", Redirect(url))
    answer = stage.get()
    assert (answer.status_code, answer.headers["location"]) == (302, url)


def test_a_loop_of_redirects_has_no_end(stage: Stage) -> None:
    stage.faults.plan("/a", Redirect("/a"), times=100)
    with (
        httpx2.Client(follow_redirects=True, verify=False, trust_env=False, max_redirects=5) as client,
        pytest.raises(httpx2.TooManyRedirects),
    ):
        client.get(stage.serving.url("one") + "/a")
    assert len(stage.faults.unused_faults) == 94


def test_a_held_request_is_answered_once_the_gate_opens(stage: Stage) -> None:
    gate = FaultGate()
    stage.faults.plan("*", Hold(gate))
    stage.faults.plan("*", Hold(gate, then=FaultResponse(500)))
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(stage.get().status_code))
    asking.start()
    gate.reached.wait()
    assert found == []
    gate.open()
    asking.join()
    assert found == [200]
    assert stage.get().status_code == 500


def test_a_client_that_leaves_a_held_request_leaves_nothing_behind(stage: Stage) -> None:
    gate = FaultGate()
    stage.faults.plan("*", Hold(gate))
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.get(stage.serving.url("one"), verify=False, trust_env=False, timeout=httpx2.Timeout(30, read=0.05))
    stage.serving.close()
    gate.open()
    assert stage.requests


def test_a_body_is_made_while_it_is_sent(stage: Stage) -> None:
    made = 0

    def pieces() -> Iterator[bytes]:
        nonlocal made
        for _ in range(100):
            made += 1
            yield b"x" * 1_000_000

    stage.faults.plan("*", StreamedBody(pieces, {"content-type": "text/xml"}))
    with httpx2.stream("GET", stage.serving.url("one"), verify=False, trust_env=False) as answer:
        stream = answer.iter_raw()
        next(stream)
        assert made < 100
        length = sum(len(piece) for piece in stream)
    assert (made, answer.headers["content-type"]) == (100, "text/xml")
    assert length > 99_000_000


def test_every_request_is_written_down(stage: Stage) -> None:
    stage.get("/a", word="b c")
    (seen,) = stage.requests
    assert (seen.server, seen.method, seen.path, seen.query) == ("one", "GET", "/a", "word=b+c")
    assert "host" in seen.headers
