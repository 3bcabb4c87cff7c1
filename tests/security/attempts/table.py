"""Every attempt, in one table."""

from collections.abc import Iterable
from itertools import groupby

from tests.security.attempt import Attempt, Lack
from tests.security.attempts import exhaustion, files, kernel, network, processes, rights

LIGHT = (*network.ATTEMPTS, *files.ATTEMPTS, *processes.ATTEMPTS, *rights.ATTEMPTS, *kernel.ATTEMPTS)
HEAVY = exhaustion.ATTEMPTS


def by_lack(attempts: Iterable[Attempt]) -> dict[frozenset[Lack], list[Attempt]]:
    """Those that need the same weakened sandbox, together."""

    def key(attempt: Attempt) -> list[int]:
        return sorted(lack.value for lack in attempt.lacking)

    groups = groupby(sorted(attempts, key=key), lambda attempt: attempt.lacking)
    return {lacking: list(group) for lacking, group in groups}
