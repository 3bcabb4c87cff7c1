"""The queue that the configuration names: SQS FIFO in the cloud, else one SQLite file on this machine."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from hummingbird.adapters.queues.sqlite import SqliteQueue
from hummingbird.adapters.queues.sqs import SqsQueue
from hummingbird.assembly.places import places
from hummingbird.config.settings import Settings
from hummingbird.domain.limits import QUEUE_TAKEN_S
from hummingbird.ports.queue import Queue


def open_queue(settings: Settings, environment: Mapping[str, str], visibility_s: int = QUEUE_TAKEN_S) -> Queue:
    """Reaches nobody yet; belongs to the event loop that is running, and whoever opened it closes it. `visibility_s`:
    how long whoever receives a message has it, unless it is kept. Raises UsageFault: its folder cannot be made."""
    if url := settings.sqs_fifo_queue_url:
        return SqsQueue(url, visibility_s, region=region_of(url), ca_bundle=settings.ca_bundle)
    return SqliteQueue(places(settings, environment).made().queue, visibility_s)


def region_of(url: str) -> str:
    """As the address of a queue says it; empty where it says nothing, and the environment is believed."""
    parts = (urlsplit(url).hostname or "").split(".")
    return parts[1] if parts[0] == "sqs" and len(parts) > 3 and parts[2] == "amazonaws" else ""
