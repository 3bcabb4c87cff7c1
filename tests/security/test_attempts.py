"""Every attempt to get out of a sandbox fails in it, and succeeds in one that lacks what kept it in."""

import asyncio
import errno
import subprocess
import sys

import pytest

from tests.security.attempt import MAKER, Attempt, Lack, Outcome, Verdict, order, outcomes
from tests.security.attempts.table import LIGHT, by_lack
from tests.security.backends import BACKENDS, Backend, in_a_sandbox, on_both_backends
from tests.security.host import Host
from tests.security.weakened import ALWAYS_THERE

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image
TURNED_AWAY = {
    *(errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EIO, errno.ENODEV),
    *(errno.EOPNOTSUPP, errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL),
}
USUALLY = [
    (backend.name, next(iter(by_lack(LIGHT)))) for backend in BACKENDS
]  # or nobody would know that attempts work
WEAK = [
    pytest.param(
        backend,
        lacking,
        id=f"{backend.name}-without-{'-'.join(sorted(each.name for each in lacking))}",
        marks=[] if (backend.name, lacking) in USUALLY else pytest.mark.thorough,
    )
    for backend in BACKENDS
    for lacking in by_lack(LIGHT)
]


def meant_for(backend: Backend, lacking: frozenset[Lack] | None = None) -> list[Attempt]:
    chosen = LIGHT if lacking is None else by_lack(LIGHT)[lacking]
    return [attempt for attempt in chosen if attempt.is_for(backend.name)]


@on_both_backends
def test_every_attempt_fails_in_a_sandbox_as_it_is(backend: Backend, host: Host, subtests: pytest.Subtests) -> None:
    attempts = meant_for(backend)
    found = asyncio.run(in_a_sandbox(backend.place(), attempts, host.world))
    for attempt in attempts:
        with subtests.test(attempt.name):
            outcome = found[attempt.name]
            assert outcome.verdict is Verdict.REFUSED, f"{attempt.tries}: {outcome}"


@pytest.mark.thorough
@pytest.mark.parametrize(("backend", "lacking"), WEAK)
def test_the_same_attempts_succeed_in_a_weakened_sandbox(
    backend: Backend, lacking: frozenset[Lack], host: Host, subtests: pytest.Subtests
) -> None:
    attempts = meant_for(backend, lacking)
    if not attempts:
        pytest.skip("no attempt needs this here")
    skip_if_it_is_always_there(backend, lacking)
    found = asyncio.run(in_a_sandbox(backend.weak(lacking, host), attempts, host.world, lacking))
    for attempt in attempts:
        with subtests.test(attempt.name):
            outcome = found[attempt.name]
            if attempt.host_decides and outcome.verdict is Verdict.REFUSED:
                skip_if_the_host_refuses(attempt, host.world)
            assert outcome.verdict is Verdict.GOT, f"{attempt.tries}: {outcome}"


def skip_if_it_is_always_there(backend: Backend, lacking: frozenset[Lack]) -> None:
    for lack in lacking:
        if reason := ALWAYS_THERE.get((backend.name, lack)):
            pytest.skip(reason)


def skip_if_the_host_refuses(attempt: Attempt, world: dict[str, object]) -> None:
    """In so many words: an attempt that is only broken is refused for other reasons."""
    outcome = _without_a_sandbox(attempt, world)
    if outcome.verdict is Verdict.REFUSED and any(f"[Errno {each}]" in outcome.words for each in TURNED_AWAY):
        pytest.skip(f"this machine has no such thing: {outcome.words}")


def _without_a_sandbox(attempt: Attempt, world: dict[str, object]) -> Outcome:
    done = subprocess.run(
        [sys.executable, "-I", "-c", MAKER], input=order([attempt], world), capture_output=True, check=False, timeout=60
    )
    return outcomes(done.stdout)[attempt.name]
