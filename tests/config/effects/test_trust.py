"""`ca_bundle` decides whom every connection believes. A server of an authority of one's own is reached with
the file that names it, and by nobody without."""

import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hummingbird.app.gitlab_write import ForgeCache
from hummingbird.app.service import open_event_inbox
from hummingbird.app.source_registry import build_source_settings, create_sources
from hummingbird.app.stores import open_queue, state_paths
from hummingbird.config.configuration import Configuration
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.protocols.tools import ByteStream, ToolContext
from hummingbird.service.protocols import InvestigationRequest
from hummingbird.storage.registry import open_object_store
from tests.app.conducting import MODEL, applied, configured, order
from tests.app.conducting import Stage as Conducting
from tests.config.effects.authority import Authority, authority
from tests.contracts.queues.backends.ministack import REGION, SURROUNDINGS
from tests.gitlab.read.stage import Answer, Stage, staged
from tests.standins.vendors.script import Script
from tests.standins.vendors.server import VendorLab
from tests.thoroughly import also

Reach = Callable[[Configuration, str, Path], Awaitable[object]]


async def forge(configuration: Configuration, url: str, folder: Path) -> None:
    forges = ForgeCache({"ORCHESTRATOR_GITLAB_TOKEN": "bot"})
    try:
        await forges(configuration).writer_for("acme/widgets").bot_ids()
    finally:
        await forges.close()


async def model(configuration: Configuration, url: str, folder: Path) -> None:
    with VendorLab(Script([])) as lab:
        stage = Conducting(folder, lab)
        stage.environment |= {"ANTHROPIC_BASE_URL": url, "READER": "r"}
        await stage.investigator().investigate(
            InvestigationRequest(order(), configuration, applied(configuration), "Why?")
        )


def tool(name: str, **arguments: object) -> Reach:
    async def reach(configuration: Configuration, url: str, folder: Path) -> None:
        found = create_sources(
            build_source_settings(configuration.settings, applied(configuration), {"READER": "r"}), {}
        )
        try:
            (wanted,) = (one for source in found for one in source.tools if one.spec.name == name)
            answer = await wanted(arguments, ToolContext("session", "call"))
            if isinstance(answer, ByteStream):
                async for _ in answer.chunks:
                    pass
        finally:
            for source in found:
                await source.close()

    return reach


async def store(configuration: Configuration, url: str, folder: Path) -> None:
    settings = configuration.settings
    await open_object_store(state_paths(settings, {}).objects, ca_bundle=settings.ca_bundle).get("a")


async def queue(configuration: Configuration, url: str, folder: Path) -> None:
    opened = open_queue(configuration.settings, {})
    try:
        await opened.check()
    finally:
        await opened.close()


async def inbox(configuration: Configuration, url: str, folder: Path) -> None:
    opened = open_event_inbox(configuration.settings)
    try:
        await opened.receive(0)
    finally:
        await opened.close()


PARTS: dict[str, Reach] = {
    "forge": forge,
    "model": model,
    "gitlab": tool("gitlab_get_mr_details", mr_iid=7),
    "testing_farm": tool("tf_get_request_status", request_id="6b2f0c1e-5d3a-4f6e-9c38-0a7d52e1b9f4"),
    "store": store,
    "queue": queue,
    "inbox": inbox,
}


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return authority(tmp_path)


@pytest.fixture
def server(ours: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secured.load_cert_chain(ours.server)
    with staged(secured) as stage:
        stage.answers = [Answer(status=404, body=b"{}")]
        place = {"AWS_ENDPOINT_URL": stage.url, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}
        for name, value in {**SURROUNDINGS, **place}.items():
            monkeypatch.setenv(name, value)
        yield stage


@pytest.mark.parametrize(
    ("part", "trusted"),
    [
        *((part, True) for part in PARTS),
        *((part, False) if part == "forge" else also(part, False) for part in PARTS),
    ],
)
async def test_ca_bundle_is_whom_a_connection_believes(
    server: Stage, ours: Authority, tmp_path: Path, part: str, trusted: bool
) -> None:
    url = server.url
    lines = [f"model: {MODEL}", f"gitlab_url: {url}", "session_store: s3://sessions"]
    lines += [f"sqs_fifo_queue_url: {url}/1/work.fifo", f"sqs_queue_url: {url}/1/events"]
    lines += [f"ca_bundle: {ours.bundle}"] if trusted else []
    sources_of = f"data_sources: {{gitlab: {{token_env: READER}}, testing_farm: {{api_url: '{url}'}}}}"
    configuration = configured(tmp_path / "config", "\n".join(lines), sources_of)
    with suppress(HummingbirdError):  # the server has nothing to say
        await PARTS[part](configuration, url, tmp_path)
    assert bool(server.asked) is trusted
