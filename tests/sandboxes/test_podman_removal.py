"""Whatever happens to a start, no container stays."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.sandboxes.podman import ContainerSpec, PodmanBackend, run_arguments
from tests.sandbox_image import sandbox_image
from tests.sandboxes.containers import exists

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image


class Announced(PodmanBackend):
    """One that says when podman is about to be asked for the container."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        super().__init__(sandbox_image(), environment=os.environ, arguments=self._announce)

    def _announce(self, container: ContainerSpec, name: str) -> list[str]:
        self.asked.set()
        return run_arguments(container, name)


async def _at_once(place: Announced) -> None:
    pass


async def _when_asked(place: Announced) -> None:
    await place.asked.wait()


async def _when_there(place: Announced) -> None:
    while not await asyncio.to_thread(exists, place.container):
        pass


MOMENTS = [_at_once, _when_asked, _when_there]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__.strip("_"))
async def test_a_start_that_is_cancelled_leaves_no_container(moment: Callable[[Announced], Awaitable[None]]) -> None:
    place = Announced()
    starting = asyncio.create_task(place.start())
    await moment(place)
    if starting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await starting
    else:
        await place.remove()  # it was quicker than we looked
    assert not exists(place.container)


@pytest.mark.thorough
async def test_a_removal_while_it_starts_leaves_no_container_and_the_start_says_so() -> None:
    place = Announced()
    starting = asyncio.create_task(place.start())
    await place.asked.wait()
    await place.remove()
    assert not exists(place.container)
    with pytest.raises(SandboxBroken, match="removed while it started"):
        await starting


@pytest.mark.thorough
async def test_a_removal_that_is_cancelled_is_done_all_the_same() -> None:
    place = Announced()
    await place.start()
    removing = asyncio.create_task(place.remove())
    await asyncio.sleep(0)
    removing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await removing
    assert not exists(place.container)


@pytest.mark.thorough
async def test_removing_twice_at_once_and_again_is_fine_and_the_place_is_broken_then() -> None:
    place = Announced()
    await place.start()
    await asyncio.gather(place.remove(), place.remove())
    await place.linger("any session")
    assert not exists(place.container)
    with pytest.raises(SandboxBroken, match="not running"):
        await place.connect()


@pytest.mark.thorough
async def test_a_container_that_cannot_be_removed_is_said(tmp_path: Path) -> None:
    """Podman is taken away meanwhile; with it back, the next removal works."""
    real = tmp_path / "podman"
    real.symlink_to("/usr/bin/podman")
    place = PodmanBackend(sandbox_image(), environment={**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"})
    await place.start()
    real.unlink()
    real.write_text("#!/bin/sh\necho refused >&2\nexit 125\n")
    real.chmod(0o755)
    with pytest.raises(
        SandboxBroken, match=f"could not remove a container: refused Try `podman rm -f {place.container}`"
    ):
        await place.remove()
    real.unlink()
    await place.remove()
    assert not exists(place.container)
