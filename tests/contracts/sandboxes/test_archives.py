"""An archive made in a sandbox of any kind is unpacked in one of any other."""

import itertools
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from hummingbird.core.protocols.sandbox import Sandbox
from tests.contracts.sandboxes.backends.bubblewrap import Bubblewrap
from tests.contracts.sandboxes.backends.cluster import Kubernetes, namespace, pooled
from tests.contracts.sandboxes.backends.podman import Podman
from tests.contracts.sandboxes.cases.archives import FILL, carried
from tests.contracts.sandboxes.questions import said
from tests.contracts.sandboxes.stage import Backend, started
from tests.real_parts import missing
from tests.sandbox_image import sandbox_image
from tests.sandboxes.kube import Stage as Namespace
from tests.thoroughly import also

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),  # whoever comes first may have to make the image
]
NAMES = ("bubblewrap", "podman", "k8s", "k8spool")


class Shelf:
    """Two sandboxes of each kind, started when they are first wanted: one that gives, one that takes."""

    def __init__(self, image: str, given: Callable[[], Namespace], held: AsyncExitStack) -> None:
        self._image, self._given, self._held = image, given, held
        self._kinds: dict[str, Backend] = {}
        self._givers: dict[str, Sandbox] = {}
        self._takers: dict[str, Sandbox] = {}

    async def giver(self, name: str) -> Sandbox:
        if name not in self._givers:
            self._givers[name] = await self._started(name)
            await said(self._givers[name], FILL)
        return self._givers[name]

    async def taker(self, name: str) -> Sandbox:
        if name not in self._takers:
            self._takers[name] = await self._started(name)
        await said(self._takers[name], "rm -rf /tmp/data")
        return self._takers[name]

    async def _started(self, name: str) -> Sandbox:
        if name not in self._kinds:
            self._kinds[name] = await self._kind(name)
        return await self._held.enter_async_context(started(self._kinds[name].make()))

    async def _kind(self, name: str) -> Backend:
        if name == "bubblewrap":
            return Bubblewrap()
        if name == "podman":
            return Podman(self._image)
        return (
            Kubernetes(self._given()) if name == "k8s" else await self._held.enter_async_context(pooled(self._given()))
        )


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    with namespace(tmp_path_factory.mktemp("cluster")) as given:
        yield given


@pytest.fixture(scope="module")
def image() -> str:
    if sys.platform != "linux":
        missing("bubblewrap works on Linux only")
    return sandbox_image()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shelf(image: str, request: pytest.FixtureRequest) -> AsyncIterator[Shelf]:
    async with AsyncExitStack() as held:
        yield Shelf(image, lambda: request.getfixturevalue("given"), held)


PAIRS = [pair if pair == ("bubblewrap", "podman") else also(*pair) for pair in itertools.permutations(NAMES, 2)]


@pytest.mark.parametrize(("giving", "taking"), PAIRS)
async def test_an_archive_goes_from_one_kind_of_sandbox_to_another(shelf: Shelf, giving: str, taking: str) -> None:
    await carried(await shelf.giver(giving), await shelf.taker(taking))
