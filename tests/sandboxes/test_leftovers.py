"""Containers of killed processes are found and removed; nobody else's ever are.

Other tests on this machine reap as well, each time they start a sandbox: who removed a leftover is not asked.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.sandboxes.podman import PodmanBackend
from hummingbird.sandboxes.podman_engine import (
    OWNER_LABEL,
    SANDBOX_LABEL,
    PodmanEngine,
    current_owner,
    is_owner_dead,
    remove_leftover_containers,
)
from tests.sandbox_image import sandbox_image
from tests.sandboxes.containers import exists, owner, podman, tiny_image

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image


@contextmanager
def labelled(*labels: str) -> Iterator[str]:
    """A running container that is not a sandbox."""
    name = f"not-ours-{uuid4().hex[:12]}"
    limits = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
    flags = ("--detach", f"--name={name}", "--network=none", *limits, *(f"--label={label}" for label in labels))
    started = podman("run", *flags, tiny_image({}), "busybox", "sleep", "600")
    assert started.returncode == 0, started.stderr
    try:
        yield name
    finally:
        podman("rm", "-f", "-t", "0", name)


def _owner_of(container: str) -> str:
    found = podman("inspect", f'--format={{{{index .Config.Labels "{OWNER_LABEL}"}}}}', container)
    return found.stdout.decode().strip()


async def test_the_next_start_removes_what_a_killed_process_left_behind() -> None:
    with owner() as (process, container):
        label = _owner_of(container)
        assert not is_owner_dead(label, running=True, me=current_owner())
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert is_owner_dead(label, running=True, me=current_owner())
        place = PodmanBackend(sandbox_image(), environment=os.environ)
        await place.start()
        await place.remove()
        assert not exists(container)


@pytest.mark.thorough
async def test_an_owner_that_is_dead_but_whose_parent_has_not_noticed_is_dead() -> None:
    """A process that was killed stays a zombie until its parent looks."""
    with owner() as (process, container):
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        await remove_leftover_containers(PodmanEngine(os.environ))
        assert not exists(container)


@pytest.mark.thorough
async def test_containers_of_the_living_and_of_others_are_left_alone() -> None:
    me = current_owner()
    dead = f"{OWNER_LABEL}={replace(me, start_ticks=me.start_ticks + 1)}"
    with (
        owner() as (_, living),
        labelled(dead) as without_our_mark,
        labelled(SANDBOX_LABEL) as without_an_owner,
        labelled(SANDBOX_LABEL, f"{OWNER_LABEL}=who knows") as unreadable,
        labelled(SANDBOX_LABEL, f"{OWNER_LABEL}={replace(me, namespace='pid:[1]')}") as out_of_sight,
        labelled(SANDBOX_LABEL, dead) as leftover,
    ):
        removed = await remove_leftover_containers(PodmanEngine(os.environ))
        kept = [living, without_our_mark, without_an_owner, unreadable, out_of_sight]
        assert not set(kept) & set(removed)
        assert [exists(name) for name in kept] == [True] * 5
        assert not exists(leftover)


def test_an_owner_is_gone_when_its_boot_its_process_or_its_number_is_another() -> None:
    me = current_owner()
    assert not is_owner_dead(str(me), running=True, me=me)
    assert is_owner_dead(str(replace(me, start_ticks=me.start_ticks + 1)), running=True, me=me), (
        "the number was given out again"
    )
    assert is_owner_dead(str(replace(me, pid=2**22 + 1)), running=True, me=me)
    assert is_owner_dead(str(replace(me, boot="earlier")), running=False, me=me)
    assert not is_owner_dead(str(replace(me, boot="elsewhere")), running=True, me=me), "no container survives a boot"
    assert not is_owner_dead(str(replace(me, namespace="pid:[1]", pid=2**22 + 1)), running=True, me=me)
    assert not is_owner_dead("", running=False, me=me)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [("echo 'no such storage' >&2; exit 125", "no such storage"), ("echo '[{\"Odd\": 1}]'", "cannot be read")],
)
async def test_a_podman_that_cannot_list_is_said(tmp_path: Path, answer: str, sentence: str) -> None:
    (tmp_path / "podman").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "podman").chmod(0o755)
    with pytest.raises(SandboxBroken, match=sentence):
        await remove_leftover_containers(PodmanEngine({"PATH": f"{tmp_path}:/usr/bin:/bin"}))
