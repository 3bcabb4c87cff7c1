"""The same attempts in a pod of a real cluster, where one is named."""

import asyncio
from pathlib import Path

import pytest

from hummingbird.app.console import SystemClock
from hummingbird.sandboxes.kubernetes_pod import KubernetesBackend
from tests.sandboxes.kube import environment, real_stage, shape
from tests.security.attempt import Verdict
from tests.security.attempts.table import LIGHT
from tests.security.backends import in_a_sandbox
from tests.security.host import Host


def test_every_attempt_fails_in_a_pod_of_a_real_cluster(host: Host, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Without a weakened half: a cluster that enforces "restricted" lets no weakened pod in."""
    attempts = [attempt for attempt in LIGHT if attempt.is_for("kubernetes")]
    with real_stage(tmp_path) as stage:
        place = KubernetesBackend(stage.site, shape(stage), SystemClock(), environment())
        found = asyncio.run(in_a_sandbox(place, attempts, host.world))
    for attempt in attempts:
        with subtests.test(attempt.name):
            outcome = found[attempt.name]
            assert outcome.verdict is Verdict.REFUSED, f"{attempt.tries}: {outcome}"
