"""What `doctor` asks of Konflux: one short list of each server, over the same road as the tools."""

from collections.abc import Mapping
from contextlib import aclosing

from hummingbird.adapters.sources.http.reader import Reader
from hummingbird.adapters.sources.konflux.door import Door
from hummingbird.adapters.sources.konflux.servers import Servers
from hummingbird.adapters.sources.konflux.settings import KonfluxSettings, tenant
from hummingbird.domain.errors import HummingbirdError

_NONE_OF_THEM = "hummingbird/doctor=asks"


async def refusals(settings: KonfluxSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Of each server that is configured, by the name it has in sentences: why it cannot be read, or nothing. Raises
    UsageFault, ClusterUnusable."""
    servers = Servers(settings, tenant(settings), environment, Reader)
    try:
        return {door.name: await _refusal(door) for door in (await servers.doors()).live_first}
    finally:
        await servers.close()


async def _refusal(door: Door) -> str:
    gaps: list[str] = []
    try:
        async with aclosing(door.items("pipelineruns", _NONE_OF_THEM, gaps)) as items:
            async for _ in items:
                break
    except HummingbirdError as error:
        return str(error)
    return gaps[0] if gaps else ""
