"""As whom a cluster is asked: one credential of a kubeconfig, as the value of the Authorization header.

Only the client of this room asks for the value. Knows nothing of requests.
"""

from base64 import b64encode
from pathlib import Path
from typing import Protocol

from hummingbird.domain.errors import ClusterUnusable


class Credential(Protocol):
    async def value(self, refused: str = "") -> str:
        """What the header says; empty for none. `refused` is the value that the server did not accept: another one, if
        there is one. Raises ClusterUnusable."""
        ...


class Fixed:
    """What the kubeconfig itself says."""

    def __init__(self, value: str) -> None:
        self._value = value

    async def value(self, refused: str = "") -> str:
        return self._value


class TokenFile:
    """Read again when its token is refused: the kubelet renews it in place."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._value = ""

    async def value(self, refused: str = "") -> str:
        if not self._value or self._value == refused:
            self._value = f"Bearer {read_token(self._path)}"
        return self._value


def read_token(path: str) -> str:
    """Raises ClusterUnusable."""
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ClusterUnusable(
            f"The kubeconfig's token file {path} cannot be read ({said}): log in again or mend tokenFile."
        ) from error


def basic(username: str, password: str) -> Fixed:
    return Fixed("Basic " + b64encode(f"{username}:{password}".encode()).decode("ascii"))


def bearer(token: str) -> Fixed:
    return Fixed(f"Bearer {token}")
