"""Looks at the configuration every few seconds, and says what came of it (G4)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hummingbird.config.configuration import Configuration
from hummingbird.config.settings import Settings
from hummingbird.config.watch import Watch
from hummingbird.domain.errors import ConfigurationBroken

_log = logging.getLogger("hummingbird")

# What is opened once and for all; the rest holds from the next message on.
_AT_START = ("sqs_queue_url", "sqs_fifo_queue_url", "sessions", "ca_bundle")
Sleep = Callable[[float], Awaitable[None]]


async def keep_looking(watch: Watch, sleep: Sleep = asyncio.sleep) -> None:
    """Until it is cancelled. A file that cannot be used is told once and changes nothing."""
    begun = watch.current.settings
    while True:
        await sleep(watch.current.settings.config_poll_seconds)
        found = await asyncio.to_thread(watch.look)
        if isinstance(found, ConfigurationBroken):
            _log.error("The configuration was changed and cannot be used, so the old one stays.")
            for fault in found.faults:
                _log.error("Configuration: %s", fault)
        elif found is not None:
            _log.info("The configuration %s was changed; it holds for all work that begins now.", found.name)
            _tell_of_restart(begun, found)


def _tell_of_restart(begun: Settings, found: Configuration) -> None:
    changed = [name for name in _AT_START if getattr(begun, name) != getattr(found.settings, name)]
    if changed:
        names = ", ".join("session_store" if name == "sessions" else name for name in changed)
        _log.warning("What %s says now needs a restart.", names)
