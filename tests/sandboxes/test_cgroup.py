"""A control group bounds a sandbox where one is delegated to us, and nothing is touched where none is."""

import errno
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hummingbird.core.errors import CommandFailed, SandboxBroken
from hummingbird.sandboxes import bubblewrap
from hummingbird.sandboxes.bubblewrap import (
    BubblewrapBackend,
    BubblewrapLimits,
    MemoryGroup,
    SocketLink,
    enclose_process,
)
from hummingbird.sandboxes.command_sandbox import CommandSandbox, LinkEnd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux only")
MIB = 1024**2
FILL_PIPES = """\
import os, sys, time
if os.fork() and os.fork() and os.fork():
    sys.exit(os.wait()[1] != 0)
held = [os.pipe() for _ in range(500)]
for _, end in held:
    os.set_blocking(end, False)
    os.write(end, bytes(65536))
time.sleep(600)
"""


class Machine:
    """Folders that look like /sys/fs/cgroup and /proc, with process 7, its child 8, and us in the group `unit`."""

    def __init__(self, folder: Path) -> None:
        self.mount, self.proc = folder / "cgroup", folder / "proc"
        for pid, children in ((7, "8 "), (8, "")):
            self.write(self.proc / f"{pid}/task/{pid}/children", children)

    @staticmethod
    def write(file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def join_v2(self, path: str = "unit", controllers: str = "cpu memory") -> Path:
        own = self.mount / path
        self.write(self.proc / "self/cgroup", f"0::/{path}\n")
        self.write(own / "cgroup.controllers", controllers)
        return own

    def join_v1(self) -> Path:
        own = self.mount / "memory/unit"
        self.write(self.proc / "self/cgroup", "5:cpu:/\n4:memory:/unit\n0::/\n")
        self.write(own / "memory.use_hierarchy", "1\n")
        return own

    def enclose(self) -> MemoryGroup | None:
        return enclose_process(7, 100 * MIB, self.mount, self.proc)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was written to the kernel's files, in order: a file of a folder keeps the last value only."""
    found: list[tuple[str, str]] = []
    write = bubblewrap._write

    def record(file: Path, value: int | str) -> None:
        found.append((f"{file.parent.name.partition('-')[0]}/{file.name}", str(value)))
        write(file, value)

    monkeypatch.setattr(bubblewrap, "_write", record)
    return found


def delegate(group: Path) -> Path:
    try:
        os.setxattr(group, "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"this file system keeps no extended attributes: {error.strerror}")
    return group


def test_a_group_that_is_not_delegated_is_left_alone(machine: Machine, written: list[tuple[str, str]]) -> None:
    for own in (machine.join_v1(), machine.join_v2()):
        before = sorted(own.iterdir())
        assert machine.enclose() is None
        assert sorted(own.iterdir()) == before
    assert written == []


def test_nothing_happens_without_control_groups(machine: Machine) -> None:
    assert machine.enclose() is None


def test_a_group_of_version_1_bounds_memory_and_swap(machine: Machine, written: list[tuple[str, str]]) -> None:
    own = delegate(machine.join_v1())
    group = machine.enclose()
    assert group is not None
    assert group.folder.parent == own
    limit = str(100 * MIB)
    assert written[:2] == [("sandbox/memory.limit_in_bytes", limit), ("sandbox/memory.memsw.limit_in_bytes", limit)]
    assert written[2:] == [("sandbox/cgroup.procs", "7"), ("sandbox/cgroup.procs", "8")]


def test_version_1_without_hierarchy_is_not_used(machine: Machine) -> None:
    machine.write(delegate(machine.join_v1()) / "memory.use_hierarchy", "0\n")
    assert machine.enclose() is None


def test_a_group_of_version_2_needs_us_in_a_leaf(machine: Machine, written: list[tuple[str, str]]) -> None:
    delegate(machine.join_v2())
    assert machine.enclose() is not None
    assert written == [
        ("hummingbird/cgroup.procs", str(os.getpid())),
        ("unit/cgroup.subtree_control", "+memory"),
        ("sandbox/memory.max", str(100 * MIB)),
        ("sandbox/memory.swap.max", "0"),
        ("sandbox/cgroup.procs", "7"),
        ("sandbox/cgroup.procs", "8"),
    ]


def test_in_a_leaf_the_group_becomes_a_sibling(machine: Machine, written: list[tuple[str, str]]) -> None:
    unit = delegate(machine.join_v2("unit/main").parent)
    group = machine.enclose()
    assert group is not None
    assert group.folder.parent == unit
    assert written[0] == ("unit/cgroup.subtree_control", "+memory")


def test_version_2_without_memory_moves_nobody(machine: Machine, written: list[tuple[str, str]]) -> None:
    delegate(machine.join_v2(controllers="cpu pids"))
    assert machine.enclose() is None
    assert written == []


def refuse(name: str, code: int, write: Callable[[Path, int | str], None]) -> Callable[[Path, int | str], None]:
    def refuse_or_write(file: Path, value: int | str) -> None:
        if file.name == name:
            raise OSError(code, os.strerror(code))
        write(file, value)

    return refuse_or_write


def test_we_move_back_when_others_are_in_our_group(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    own = delegate(machine.join_v2())
    monkeypatch.setattr(bubblewrap, "_write", refuse("cgroup.subtree_control", errno.EBUSY, bubblewrap._write))
    assert machine.enclose() is None
    assert (own / "cgroup.procs").read_text() == f"{os.getpid()}\n"
    assert not list(own.glob("sandbox-*"))


def test_a_group_that_takes_no_limit_is_removed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    own = delegate(machine.join_v1())
    monkeypatch.setattr(bubblewrap, "_write", refuse("memory.limit_in_bytes", errno.EINVAL, bubblewrap._write))
    assert machine.enclose() is None
    assert not list(own.glob("sandbox-*"))


@pytest.mark.parametrize(("is_v2", "name"), [(True, "memory.events"), (False, "memory.oom_control")])
def test_oom_kills_are_counted(tmp_path: Path, *, is_v2: bool, name: str) -> None:
    group = MemoryGroup(tmp_path, is_v2)
    assert group.count_oom_kills() == 0
    (tmp_path / name).write_text("oom_kill_disable 0\noom 9\noom_kill 3\n")
    assert group.count_oom_kills() == 3


def test_removal_kills_and_waits_for_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = MemoryGroup(tmp_path / "sandbox", is_v2=True)
    group.folder.mkdir()
    attempts: list[str] = []

    def remove_at_third_attempt(folder: Path) -> None:
        attempts.append((folder / "cgroup.kill").read_text())
        if len(attempts) < 3:
            raise OSError(errno.EBUSY, "busy")
        shutil.rmtree(folder)  # the kernel's files need not be removed one by one

    monkeypatch.setattr(Path, "rmdir", remove_at_third_attempt)
    group.remove()
    assert attempts == ["1\n"] * 3
    assert not group.folder.exists()


def test_a_group_that_stays_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_REMOVAL_S", 0)
    (tmp_path / "process").touch()
    with pytest.raises(SandboxBroken, match="could not be removed"):
        MemoryGroup(tmp_path, is_v2=False).remove()


async def test_a_command_says_that_the_memory_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    close = SocketLink.close

    async def close_after_oom_kill(link: SocketLink) -> LinkEnd:
        await close(link)
        return LinkEnd(killed=True, memory_ran_out=True)

    monkeypatch.setattr(SocketLink, "close", close_after_oom_kill)
    sandbox = CommandSandbox(BubblewrapBackend())
    await sandbox.start()
    try:
        assert "memory ran out" in (await sandbox.exec("kill -9 $$")).complaint
        assert (await sandbox.exec("true")).complaint == ""
        with pytest.raises(CommandFailed, match="memory ran out"):
            _ = [chunk async for chunk in sandbox.stream_exec("kill -9 $$")]
    finally:
        await sandbox.cleanup()


async def test_a_real_group_stops_pipes_and_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group allows 64 MiB here and the runner 2 GiB, so that it is the group that stops them."""
    monkeypatch.setattr(bubblewrap, "_CGROUP_SLACK_BYTES", -2112 * MIB)
    backend = BubblewrapBackend(BubblewrapLimits(memory_bytes=2048 * MIB, space_bytes=64 * MIB))
    sandbox = CommandSandbox(backend)
    await sandbox.start()
    try:
        if (group := backend._group) is None:
            pytest.skip("no control group is delegated to us; `systemd-run --scope -p Delegate=yes` makes one")
        done = await sandbox.exec("python3 -", FILL_PIPES.encode())
        assert "memory ran out" in done.complaint
    finally:
        await sandbox.cleanup()
    assert not group.folder.exists()
