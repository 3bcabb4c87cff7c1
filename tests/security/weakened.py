"""Sandboxes that were weakened on purpose, so that an attempt which cannot succeed anywhere is noticed.

They are made here, by changing what the real ones are started with; the product has no option for any of it. Each
lacks what an attempt needs and nothing else.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from hummingbird.sandboxes import bubblewrap, command_sandbox, podman, runner_client
from hummingbird.sandboxes.bubblewrap import (
    BubblewrapBackend,
    BubblewrapLimits,
    LaunchSpec,
    launch_without_privileges,
)
from hummingbird.sandboxes.podman import ContainerSpec, PodmanBackend, run_arguments
from hummingbird.sandboxes.runner_client import SubprocessLink, runner_source
from tests.security.attempt import Lack
from tests.security.host import RESOLVER, Host

_MUCH = 4 * 1024**3
_MUCH_ROOM = BubblewrapLimits(memory_bytes=_MUCH, space_bytes=_MUCH, processes=1000, inodes=10**7, locks=10**7)
_HEADER = 8  # digits before the program that say how long it is
# What is written in the program inside, and what a weakened one has there
_OTHER_WORDS: dict[Lack, dict[str, str]] = {
    Lack.SECRECY: {"prctl(DUMPABLE, 0)": "None"},
    Lack.FILTER: {"apply_seccomp_filter(filters)": "None"},
    Lack.PROCESSES: {"watch.enforce(workers)": "None"},  # it would look after the memory of everybody in sight
    Lack.FORGETTING: {"close_inherited_descriptors(control)": "None", "os.closerange(3, 4096)": "None"},
    Lack.TIDINESS: {"for _ in range(1000)": "for _ in range(0)"},
}
ALWAYS_THERE = {("bubblewrap", Lack.NO_NEW_RIGHTS): "bubblewrap itself sets no_new_privs, whatever it is told"}
_WAITING = "\nimport time\nwhile True: time.sleep(60)\n"


class WeakBubblewrap(BubblewrapBackend):
    def __init__(self, lacking: frozenset[Lack], host: Host) -> None:
        super().__init__(_MUCH_ROOM if lacking & {Lack.ROOM, Lack.PROCESSES} else None)
        self._lacking = lacking
        self._host = host

    async def _launch(self, control: int) -> None:
        way = patch.object(bubblewrap, "launch_without_privileges", self._way)
        with way, patch.object(bubblewrap, "runner_source", self._text):
            await super()._launch(control)

    def _way(self, program: Path, held: ExitStack) -> LaunchSpec:
        way = launch_without_privileges(program, held)
        if Lack.RIGHTS in self._lacking:
            way = replace(way, identity={})
        if Lack.CLEAN_START in self._lacking:
            way = replace(way, environment={**os.environ, **way.environment})
        if Lack.FORGETTING in self._lacking:
            way = replace(way, fds=(*way.fds, bubblewrap._open_path(self._host.folder, held)))
        return way

    def _text(self, *arguments: str) -> bytes:
        return _program(arguments, self._lacking)

    def _build_options(self, seccomp: int, written: dict[str, int], brought: int | None) -> list[str]:
        replaced = {Lack.RESOLVER: "nsswitch.conf", Lack.PASSWD: "passwd"}
        kept = {name: fd for name, fd in written.items() if name not in {replaced.get(each) for each in self._lacking}}
        found = super()._build_options(seccomp, kept, brought)
        for lack in sorted(self._lacking, key=lambda each: each.value):
            found = _without(found, lack)
        at = found.index("--remount-ro") if "--remount-ro" in found else len(found)
        return [*found[:at], *self._additions(), *found[at:]]

    def _additions(self) -> list[str]:
        folder = str(self._host.folder)
        added = {
            Lack.NETWORK: ["--share-net"],
            Lack.RESOLVER: [
                *("--ro-bind", f"{folder}/resolv.conf", "/etc/resolv.conf"),
                *("--ro-bind", f"{folder}/nsswitch.conf", "/etc/nsswitch.conf"),
            ],
            Lack.FOLDER: ["--bind", folder, folder],
            Lack.PASSWD: ["--ro-bind", "/etc/passwd", "/etc/passwd"],
            Lack.DEVICES: ["--dev-bind", "/dev/null", "/dev/strange"],
            Lack.KERNEL_FILES: ["--bind", "/proc/sys", "/proc/sys"],
            Lack.CAPABILITIES: ["--cap-add", "ALL"],
            Lack.RIGHTS: ["--cap-add", "ALL"],
        }
        return [option for lack, options in added.items() if lack in self._lacking for option in options]


_NAMESPACES = ["--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
# Bubblewrap's options that keep something, how many words follow each, and what stands there instead
_KEPT_BY: dict[Lack, dict[str, tuple[int, list[str]]]] = {
    Lack.FILTER: {"--seccomp": (1, [])},
    Lack.LAST_NAMESPACE: {"--disable-userns": (0, [])},
    Lack.CAPABILITIES: {"--cap-drop": (1, [])},
    Lack.RIGHTS: {
        "--unshare-all": (0, [*_NAMESPACES, "--unshare-pid"]),
        "--unshare-user": (0, []),
        "--disable-userns": (0, []),
        "--cap-drop": (1, []),
        "--uid": (1, []),
        "--gid": (1, []),
    },
    Lack.PROCESSES: {"--unshare-all": (0, _NAMESPACES), "--as-pid-1": (0, [])},
    Lack.READ_ONLY: {"--remount-ro": (1, [])},
    Lack.KERNEL_FILES: {"--remount-ro": (1, [])},
    Lack.CLEAN_START: {"--clearenv": (0, [])},
    Lack.DEVICES: {"--dev-bind": (2, [])},
    Lack.ROOM: {"--size": (1, ["--size", str(_MUCH)])},
}


def _without(options: Sequence[str], lack: Lack) -> list[str]:
    rules, found, rest = _KEPT_BY.get(lack, {}), list[str](), list(options)
    assert rules.keys() <= set(options), f"some of {sorted(rules)} is no option of ours any more"
    while rest:
        word = rest.pop(0)
        values, instead = rules.get(word, (0, [word]))
        found += instead
        del rest[:values]
    return found


class WeakPodman(PodmanBackend):
    def __init__(self, image: str, lacking: frozenset[Lack], host: Host) -> None:
        much = {"memory_bytes": _MUCH, "space_bytes": _MUCH} if Lack.ROOM in lacking else {}
        super().__init__(image, environment=os.environ, arguments=self._weak_arguments, **much)
        self._lacking = lacking
        self._host = host
        if Lack.CLEAN_START in lacking:
            self._podman.environment = dict(os.environ)

    async def _run_container(self) -> None:
        with patch.object(podman, "parse_greeting", lambda *_: None):  # it would refuse such a container
            await super()._run_container()

    async def connect(self) -> SubprocessLink:
        with patch.object(runner_client, "runner_source", lambda *arguments: _program(arguments, self._lacking)):
            return await super().connect()

    def _weak_arguments(self, container: ContainerSpec, name: str) -> list[str]:
        if Lack.ROOM in self._lacking:
            container = replace(container, processes=1000)
        *options, image = (found := run_arguments(container, name))[: found.index(container.image) + 1]
        inside = found[len(options) + 1 :]
        for lack, changes in self._changes().items():
            if lack in self._lacking:
                for old, new in changes.items():
                    assert not old or any(each.startswith(old) for each in options), f"{old} is no option any more"
                    options = [each for each in options if not old or not each.startswith(old)] + new
        if Lack.PROCESSES in self._lacking:
            inside[-1] = _greeting_alone(inside[-1])
        return [*options, image, *inside]

    def _changes(self) -> Mapping[Lack, dict[str, list[str]]]:
        folder = self._host.folder
        return {
            Lack.NETWORK: {"--network=": ["--network=host"], "--uts=": []},
            Lack.RESOLVER: {"": [f"--dns={RESOLVER}"]},
            Lack.FILTER: {"": ["--security-opt=seccomp=unconfined"]},
            Lack.RIGHTS: {"--user=": ["--user=0:0"], "--cap-drop=": ["--cap-add=ALL"]},
            Lack.CAPABILITIES: {"--cap-drop=": ["--cap-add=ALL"]},
            Lack.NO_NEW_RIGHTS: {"--security-opt=no-new-privileges": []},
            Lack.PROCESSES: {"": ["--pid=host"]},
            Lack.FOLDER: {"": [f"--volume={folder}:{folder}"]},
            Lack.PASSWD: {"": ["--volume=/etc/passwd:/etc/passwd:ro"]},
            Lack.READ_ONLY: {"": ["--tmpfs=/strange:rw,mode=1777"]},
            Lack.DEVICES: {"": ["--device=/dev/null:/dev/strange"]},
            Lack.KERNEL_FILES: {"": ["--security-opt=unmask=ALL"]},
            Lack.CLEAN_START: {"--env-host": ["--env-host=true"], "--unsetenv-all": []},
            Lack.ROOM: {"--shm-size=": [f"--shm-size={_MUCH}b"]},
            Lack.COMMAND_LIMITS: {
                "--ulimit=fsize": [],
                "--ulimit=core": ["--ulimit=core=1000:1000"],
                "--ulimit=nofile": ["--ulimit=nofile=2000:2000"],
            },
        }


def _greeting_alone(text: str) -> str:
    """Process 1 of a container ends what lost its parent; among the processes of the host it must not."""
    head, mark, _ = text.partition("}), flush=True)")
    assert mark, "process 1 greets in another way now"
    return head + mark + _WAITING


def _program(arguments: Sequence[str], lacking: frozenset[Lack]) -> bytes:
    text = runner_source(*arguments)[_HEADER:].decode()
    for lack in lacking:
        for old, new in _OTHER_WORDS.get(lack, {}).items():
            assert old in text, f"{old} is not in the program inside any more"
            text = text.replace(old, new)
    return str(len(text.encode())).zfill(_HEADER).encode() + text.encode()


@contextmanager
def without_command_limits(lacking: frozenset[Lack]) -> Iterator[None]:
    """What each command is limited to is told to the program inside with each request."""
    limits = {} if Lack.COMMAND_LIMITS in lacking else command_sandbox.PROCESS_LIMITS
    with patch.object(command_sandbox, "PROCESS_LIMITS", limits):
        yield
