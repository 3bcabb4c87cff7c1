"""Journeys with a store in trouble are in the same hurry as those with a GitLab in trouble."""

from collections.abc import AsyncIterator

import pytest

from tests.contracts.queues.backends.ministack import REGION, Ministack
from tests.journeys.faults.buckets import Bucket
from tests.journeys.faults.proxy import proxied
from tests.journeys.service.conftest import in_a_hurry

__all__ = ["in_a_hurry"]


@pytest.fixture
async def bucket(ministack: Ministack, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bucket]:
    """An empty one, that the service finds by the environment, behind a proxy. Waiting for it is quick."""
    monkeypatch.setattr("hummingbird.storage.object_store.OBJECT_RETRIES", 1)
    monkeypatch.setattr("hummingbird.storage.bucket_journal.LEASE_S", 1.0)
    monkeypatch.setattr("hummingbird.service.run_stage.TAKEN_PAUSE_S", 1.0)
    async with proxied(ministack.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        monkeypatch.setenv("AWS_REGION", REGION)
        made = Bucket(ministack, proxy)
        yield made
        made.close()
