"""What of this machine the attempts reach for: listeners, planted files, a process, a token. All opened here, for as
long as the tests run, and on loopback addresses alone."""

import hashlib
import os
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from hummingbird.core.limits import SANDBOX_UID

GREETING = "good day from the host"
TOKEN_NAME = "HUMMINGBIRD_ATTEMPTED_TOKEN"
NAME = "attempt.hummingbird.test"
RESOLVER = "127.0.0.77"
PROJECT = Path(__file__).parents[2]


class Host:
    """`world` is what the attempts are told. Secrets stand in it in halves, so that whoever finds a whole one found it
    outside. `folder` can be read and written by everybody; whoever sees it sees a planted file and a socket."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        mark = secrets.token_hex(8)
        self.folder = Path(f"/var/tmp/hummingbird-attempts-{mark}")
        self.secret, self.token, self.sleeper = (_halves() for _ in range(3))
        self.planted_name = f".hummingbird-planted-{mark}"
        self._make_folder()
        self.planted = [path for place in self._places() if (path := self._plant(place))]
        self.agent = self.folder / "agent.sock"
        self._set_token()
        self._start_sleeper()
        self.world: dict[str, Any] = {
            "ipv4": "127.0.0.1",
            "ipv6": "::1",
            **self._listeners(mark),
            "abstract": f"hummingbird-attempts-{mark}",
            "sockets": [str(self.agent)],
            "greeting": GREETING,
            "unresolved": NAME,
            "planted": self.planted_name,
            "planted_paths": [str(path) for path in self.planted],
            "secret": self.secret,
            "token": self.token,
            "sleeper": self.sleeper,
            "passwd": hashlib.sha256(Path("/etc/passwd").read_bytes()).hexdigest(),
            "private_paths": [str(PROJECT), f"{Path.home()}/", str(self.folder)],
        }

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o777)
        self.folder.chmod(0o777)
        self._held.callback(_removed, self.folder)
        (self.folder / "resolv.conf").write_text(f"nameserver {RESOLVER}\noptions timeout:1 attempts:1\n")
        (self.folder / "nsswitch.conf").write_text("hosts: dns\n")

    def _places(self) -> list[Path]:
        cache = PROJECT / ".pytest_cache"
        return [self.folder, Path.home(), Path("/tmp"), Path("/var/tmp"), Path("/run"), Path("/dev/shm"), cache]

    def _plant(self, place: Path) -> Path | None:
        path = place / self.planted_name
        try:
            path.write_text("".join(self.secret))
        except OSError:
            return None  # an ordinary user cannot write everywhere
        path.chmod(0o644)
        self._held.callback(path.unlink, missing_ok=True)
        return path

    def _set_token(self) -> None:
        os.environ[TOKEN_NAME] = "".join(self.token)
        self._held.callback(os.environ.pop, TOKEN_NAME, None)

    def _start_sleeper(self) -> None:
        """As the user whom sandboxes run as, so that nothing but the sandbox itself is in the way."""
        identity: dict[str, Any] = {"user": SANDBOX_UID, "group": SANDBOX_UID, "extra_groups": []}
        process = subprocess.Popen(
            ["tail", "-f", "/dev/null", "".join(self.sleeper)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            start_new_session=True,
            **(identity if os.geteuid() == 0 else {}),
        )
        self._held.callback(process.wait)
        self._held.callback(process.kill)

    def _listeners(self, mark: str) -> dict[str, int]:
        ports = {}
        for version, family, address in ((4, socket.AF_INET, "127.0.0.1"), (6, socket.AF_INET6, "::1")):
            ports[f"tcp{version}"] = self._listen(family, socket.SOCK_STREAM, (address, 0), _greet)
            ports[f"udp{version}"] = self._listen(family, socket.SOCK_DGRAM, (address, 0), _answer)
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0hummingbird-attempts-{mark}", _greet)
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.agent), _greet)
        self.agent.chmod(0o777)
        self._listen(socket.AF_INET, socket.SOCK_DGRAM, (RESOLVER, 53), _resolve)
        return ports

    def _listen(self, family: int, kind: int, address: Any, serve: Callable[[socket.socket], None]) -> int:
        """The port; 0 where there is none, or where this machine does not have such an address."""
        listener = socket.socket(family, kind)
        self._held.callback(listener.close)
        try:
            listener.bind(address)
        except OSError:
            return 0
        if kind == socket.SOCK_STREAM:
            listener.listen(16)
        thread = threading.Thread(target=_forever, args=(serve, listener), daemon=True)
        thread.start()
        self._held.callback(thread.join, 5)
        self._held.callback(_shut, listener)
        found = listener.getsockname()
        return int(found[1]) if isinstance(found, tuple) else 0


@contextmanager
def hosting() -> Iterator[Host]:
    with ExitStack() as held:
        yield Host(held)


def _halves() -> list[str]:
    return [secrets.token_hex(16), secrets.token_hex(16)]


def _removed(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def _shut(listener: socket.socket) -> None:
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)  # wakes whoever waits in it


def _forever(serve: Callable[[socket.socket], None], listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            serve(listener)


def _greet(listener: socket.socket) -> None:
    talk, _ = listener.accept()
    with talk, suppress(OSError):
        talk.sendall(GREETING.encode())


def _answer(listener: socket.socket) -> None:
    words, sender = listener.recvfrom(512)
    if not words and not sender:
        raise OSError
    listener.sendto(GREETING.encode(), sender)


def _resolve(listener: socket.socket) -> None:
    """Whatever is asked for, it is at 127.0.0.1."""
    question, sender = listener.recvfrom(512)
    if not question:
        raise OSError
    answer = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01"
    asked = question[12:].split(b"\0", 1)[0] + question[12:][question[12:].index(b"\0") :][:5]
    is_ipv4 = asked[-4:-2] == b"\x00\x01"
    head = question[:2] + b"\x81\x80" + b"\x00\x01" + (b"\x00\x01" if is_ipv4 else b"\x00\x00") + bytes(4)
    listener.sendto(head + asked + (answer if is_ipv4 else b""), sender)
