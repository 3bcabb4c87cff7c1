"""A double of `kubectl exec` for machines without kubectl: same flags, same protocol, same words and exit codes.

    kubectl [--kubeconfig F] [--context C] [-n NS] exec [-i] POD [-c C] -- COMMAND …

It blocks where kubectl blocks: stdin is read as fast as the server takes it, output is written before more is read.
"""

import argparse
import http.client
import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import NoReturn
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import RemoteProtocolError

from hummingbird.lab.kubernetes_api.access import Raw
from tests.standins.kubernetes import channels, kubeconfig

_CHUNK = 32 * 1024
_OUTLETS = {channels.STDOUT: 1, channels.STDERR: 2}
_CUT_OFF = "error: websocket: close 1006 (abnormal closure): unexpected EOF"


class Failed(Exception):
    """What kubectl would print, and its exit code."""

    def __init__(self, words: str, code: int = 1) -> None:
        super().__init__(words)
        self.code = code


def install(folder: Path) -> Path:
    """An executable `kubectl` in that folder."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "kubectl"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {__spec__.name} "$@"\n')
    script.chmod(0o755)
    return script


def _from_server(status: Raw) -> Failed:
    return Failed(f"Error from server ({status.get('reason', '')}): {status.get('message', '')}")


class Server:
    def __init__(self, access: kubeconfig.ClusterEndpoint) -> None:
        self.address: SplitResult = urlsplit(access.server)
        self.headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}

    @property
    def place(self) -> tuple[str, int]:
        return self.address.hostname or "", self.address.port or 80

    def get(self, path: str) -> Raw:
        connection = http.client.HTTPConnection(*self.place)
        try:
            connection.request("GET", self.address.path + path, headers=self.headers)
            response = connection.getresponse()
            found: Raw = json.loads(response.read())
        except ConnectionRefusedError:
            raise self.refused() from None
        finally:
            connection.close()
        if response.status >= 300:
            raise _from_server(found)
        return found

    def refused(self) -> Failed:
        where = self.address.netloc
        words = f"The connection to the server {where} was refused - did you specify the right host or port?"
        return Failed(words)


class Session:
    """One command over one WebSocket. A thread of its own feeds stdin; the main one reads."""

    def __init__(self, server: Server, path: str) -> None:
        self._server = server
        self._path = path
        try:
            self._socket = socket.create_connection(server.place)
        except ConnectionRefusedError:
            raise server.refused() from None
        self._wire = WSConnection(ConnectionType.CLIENT)
        self._thinking = threading.Lock()  # the protocol's state
        self._sending = threading.Lock()  # held while the server makes us wait, so never together with the other
        self._rejection = b""
        self._message = b""

    def run(self, *, stdin: bool) -> int:
        headers = [(name.encode(), value.encode()) for name, value in self._server.headers.items()]
        target = self._server.address.path + self._path
        host = self._server.address.netloc
        self._send(Request(host=host, target=target, subprotocols=[channels.V5], extra_headers=headers))
        while True:
            content = self._receive()
            with self._thinking:
                self._wire.receive_data(content or None)
                events = list(self._wire.events())
            for event in events:
                code = self._meet(event, stdin=stdin)
                if code is not None:
                    return code
            if not content:
                raise Failed(_CUT_OFF)

    def _meet(self, event: Event, *, stdin: bool) -> int | None:
        """The exit code, once it is known."""
        match event:
            case AcceptConnection() if stdin:
                threading.Thread(target=self._feed, daemon=True).start()
            case RejectConnection(has_body=False, status_code=code):
                raise Failed(f"error: unable to upgrade connection: {code}")
            case RejectData(data=content, body_finished=finished):
                self._rejection += content
                if finished:
                    raise _from_server(json.loads(self._rejection))
            case BytesMessage(data=content, message_finished=finished):
                self._message += content
                if finished:
                    whole, self._message = self._message, b""
                    return _took(whole)
            case TextMessage():
                raise Failed("error: unexpected text message")
            case Ping():
                self._send(event.response())
            case CloseConnection(code=code):
                raise Failed(f"error: websocket: close {code}")
        return None

    def _feed(self) -> None:
        try:
            while content := os.read(0, _CHUNK):
                self._send(Message(data=channels.message(channels.STDIN, content)))
            self._send(Message(data=channels.message(channels.CLOSE, bytes((channels.STDIN,)))))
        except OSError:
            return  # the reading side says what became of the connection

    def _send(self, event: Event) -> None:
        with self._thinking:
            content = self._wire.send(event)
        with self._sending:
            self._socket.sendall(content)

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(2 * _CHUNK)
        except ConnectionResetError:
            raise Failed(_CUT_OFF) from None


def _took(received: bytes) -> int | None:
    channel, content = received[0], received[1:]
    if channel in _OUTLETS:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(_OUTLETS[channel], rest) :]
    return _exit_code(json.loads(content)) if channel == channels.ERROR else None


def _exit_code(status: Raw) -> int:
    if status["status"] == "Success":
        return 0
    if status.get("reason") == "NonZeroExitCode":
        causes = status["details"]["causes"]
        code = next(int(cause["message"]) for cause in causes if cause["reason"] == "ExitCode")
        raise Failed(f"command terminated with exit code {code}", code)
    raise Failed(f"error: {status['message']}")


def execute(options: argparse.Namespace, command: list[str]) -> int:
    try:
        cluster_access = kubeconfig.read_kubeconfig(kubeconfig.kubeconfig_path(options.kubeconfig), options.context)
    except kubeconfig.KubeconfigUnusable as unusable:
        raise Failed(f"error: {unusable}") from unusable
    server = Server(cluster_access)
    name = options.pod.removeprefix("pods/").removeprefix("pod/")
    path = f"/api/v1/namespaces/{quote(options.namespace or cluster_access.namespace or 'default')}/pods/{quote(name)}"
    pod = server.get(path)
    phase = pod["status"]["phase"]
    if phase in {"Succeeded", "Failed"}:
        raise Failed(f"error: cannot exec into a container in a completed pod; current phase is {phase}")
    container = options.container or pod["spec"]["containers"][0]["name"]
    asked = [("command", each) for each in command]
    asked += [("container", container), ("stdin", "true")] if options.stdin else [("container", container)]
    query = urlencode([*asked, ("stdout", "true"), ("stderr", "true")])
    try:
        return Session(server, f"{path}/exec?{query}").run(stdin=options.stdin)
    except RemoteProtocolError as problem:
        raise Failed(f"error: unable to upgrade connection: {problem}") from problem


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Failed(f"error: {message}\nSee 'kubectl exec --help' for usage.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="kubectl", parents=[_shared("")], allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=_Parser)
    # suppressed, so that what stands before the verb is not forgotten after it
    verb = verbs.add_parser("exec", parents=[_shared(argparse.SUPPRESS)], allow_abbrev=False)
    verb.add_argument("-i", "--stdin", action="store_true")
    verb.add_argument("-q", "--quiet", action="store_true")
    verb.add_argument("-c", "--container", default="")
    verb.add_argument("pod")
    return parser


def _shared(default: str) -> _Parser:
    """The flags that may stand before the verb or after it."""
    shared = _Parser(add_help=False)
    for flags in (("--kubeconfig",), ("--context",), ("-n", "--namespace")):
        shared.add_argument(*flags, default=default)
    return shared


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if "--" not in given or given[-1] == "--":
            raise Failed("error: you must specify at least one command for the container")
        split = given.index("--")
        options = _parser().parse_args(given[:split])
        return execute(options, given[split + 1 :])
    except Failed as failed:
        sys.stderr.write(f"{failed}\n")
        return failed.code


if __name__ == "__main__":
    raise SystemExit(main())
