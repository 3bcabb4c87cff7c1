"""The remote command protocol, spoken by hand: what kubectl hides."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.standins.kubernetes import channels
from tests.standins.kubernetes.server import KubernetesLab
from tests.standins.test_kubernetes.stage import Place, pod, refused


@pytest.fixture(scope="module")
def address(lab: KubernetesLab, image: str) -> Iterator[str]:
    place = Place(lab, f"ns-{uuid.uuid4().hex[:8]}", image)
    place.started(pod("one", image))
    yield f"{lab.url_for(place.token)}{place.path}/one/exec"
    place.http.close()


def asked(*command: str, **more: str) -> dict[str, str | list[str]]:
    return {"command": list(command), "stdout": "true", "stderr": "true", **more}


def until_the_end(socket: Any) -> tuple[bytes, bytes, dict[str, Any]]:
    """stdout, stderr and the Status."""
    heard = {channels.STDOUT: b"", channels.STDERR: b""}
    while True:
        received = socket.receive_bytes(timeout=60)
        if received[0] == channels.ERROR:
            return heard[channels.STDOUT], heard[channels.STDERR], json.loads(received[1:])
        heard[received[0]] += received[1:]


@pytest.mark.parametrize("protocol", [channels.V5, channels.V4])
def test_output_and_exit_code_come_on_their_channels(address: str, protocol: str) -> None:
    with (
        httpx2.Client(verify=False) as http,
        http.websocket(
            address, params=asked("sh", "-c", "echo o; echo e >&2; exit 9"), subprotocols=[protocol]
        ) as socket,
    ):
        assert socket.subprotocol == protocol
        out, err, status = until_the_end(socket)
    assert (out, err) == (b"o\n", b"e\n")
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "9"}]


def test_the_fifth_version_can_end_stdin_and_go_on_listening(address: str) -> None:
    with (
        httpx2.Client(verify=False) as http,
        http.websocket(address, params=asked("cat", stdin="true"), subprotocols=[channels.V5]) as socket,
    ):
        # the real one begins with an empty message
        assert socket.receive_bytes(timeout=60) == bytes((channels.STDOUT,))
        socket.send_bytes(channels.message(channels.STDIN, b"hello"))
        socket.send_bytes(bytes((channels.CLOSE, channels.STDIN)))
        out, _, status = until_the_end(socket)
    assert (out, status["status"]) == (b"hello", "Success")


@pytest.mark.thorough
def test_output_that_was_not_asked_for_is_not_sent(address: str) -> None:
    params = asked("sh", "-c", "echo o; echo e >&2", stdout="false")
    with (
        httpx2.Client(verify=False) as http,
        http.websocket(address, params=params, subprotocols=[channels.V5]) as socket,
    ):
        out, err, _ = until_the_end(socket)
    assert (out, err) == (b"", b"e\n")


@pytest.mark.parametrize(
    ("query", "said"), [("command=true", "Upgrade request required"), ("", "at least one command")]
)
def test_what_is_no_websocket_is_a_bad_request(address: str, query: str, said: str) -> None:
    assert said in refused(httpx2.post(f"{address}?{query}", verify=False), 400, "BadRequest")
