"""The pauses that the service makes with a GitLab in trouble, short: journeys wait for what happens, not for time."""

from dataclasses import replace
from functools import partial

import pytest

from hummingbird.gitlab.write.client import WRITE_POLICY
from hummingbird.service.worker import Worker, WorkPauses


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.gitlab.write.client.WRITE_POLICY", replace(WRITE_POLICY, first_pause_s=0.01))
    monkeypatch.setattr("hummingbird.service.publisher.NOTE_LOOKS_S", (0.02, 0.05))
    monkeypatch.setattr("hummingbird.service.pipeline_settle.SETTLE_LOOK_S", 1.0)
    impatient = partial(Worker, pauses=WorkPauses(slot_s=1.0, retries_s=(0, 0), outages_s=(1, 1, 1, 1)))
    monkeypatch.setattr("hummingbird.app.service.Worker", impatient)
