"""Servers on loopback: each application has a port, and nothing is left behind."""

import socket
import threading

import httpx2
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hummingbird.lab.http_server import TRANSPORT_KEY, LabServer, open_listener


def saying(word: str) -> ASGIApp:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(f"{word} {TRANSPORT_KEY in scope}")(scope, receive, send)

    return application


def test_each_application_answers_on_its_own_port() -> None:
    with LabServer({"a": saying("one"), "b": saying("two")}) as serving:
        assert httpx2.get(serving.url("a")).text == "one True"
        assert httpx2.get(serving.url("b")).text == "two True"
        assert serving.url("a") != serving.url("b")


def test_a_listener_that_was_opened_before_is_the_one_that_answers() -> None:
    door = open_listener(0)
    port = door.getsockname()[1]
    serving = LabServer({"a": saying("one")}, listeners={"a": door})
    assert serving.url("a") == f"http://127.0.0.1:{port}"
    with serving:
        assert httpx2.get(f"http://127.0.0.1:{port}").text == "one True"


@pytest.mark.thorough
def test_afterwards_the_port_is_free_and_the_thread_gone() -> None:
    with LabServer({"a": saying("one")}, name="to-be-gone") as serving, httpx2.Client() as client:
        assert client.get(serving.url("a")).status_code == 200
        assert "to-be-gone" in {each.name for each in threading.enumerate()}
        port = int(serving.url("a").rsplit(":", 1)[1])
    serving.close()
    assert "to-be-gone" not in {each.name for each in threading.enumerate()}
    open_listener(port).close()


def test_a_port_that_is_taken_is_refused_even_before_it_is_served() -> None:
    """Two sockets that reuse addresses may both bind one: it is listening that finds out."""
    with open_listener(0) as first, pytest.raises(OSError, match="in use"):
        open_listener(first.getsockname()[1])


def test_only_loopback_listens() -> None:
    with open_listener(0) as door:
        assert door.getsockname()[0] == "127.0.0.1"
        assert door.proto == socket.IPPROTO_TCP


def test_questions_are_answered_in_the_servers_thread_and_errors_come_back() -> None:
    with LabServer({"a": saying("one")}, name="asked") as serving:
        assert serving.run_in_server(lambda: threading.current_thread().name) == "asked"
        with pytest.raises(ZeroDivisionError):
            serving.run_in_server(lambda: 1 // 0)
