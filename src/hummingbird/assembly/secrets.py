"""Which values of the environment must never be seen by anybody (T7, I1, I2)."""

import re
from collections.abc import Iterable, Mapping

from hummingbird.domain.secrets import Secrets

_TELLS = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|_DSN$|PAT$", re.IGNORECASE)


def secrets_of(environment: Mapping[str, str], others: Iterable[str] = ()) -> Secrets:
    """Every variable whose name says that it holds one, and `others`; a path to a file with one is not one."""
    named = ((name, value) for name, value in environment.items() if _TELLS.search(name))
    return Secrets([*(value for _, value in named if not value.startswith(("/", "./", "~"))), *others])
