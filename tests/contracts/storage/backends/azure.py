"""Azure's blobs as azurite serves them: Microsoft's own emulator, an npm package that scripts/real-parts gets."""

import base64
import hashlib
import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from urllib.request import Request, urlopen

from tests.contracts.storage.backends.serving import served
from tests.real_parts import npm_program

_ACCOUNT = "devstoreaccount1"  # every azurite has it, with this key, for anybody who can reach it
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2023-11-03"
_NUMBERS = count(1)


class Azurite:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    @property
    def surroundings(self) -> dict[str, str]:
        """What an operator would set."""
        return {
            "AZURE_STORAGE_ENDPOINT": f"{self.endpoint}/{_ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
            "NO_PROXY": "127.0.0.1",
        }

    def address(self) -> str:
        """Of a new, empty place in a container."""
        container = f"container-{next(_NUMBERS)}"
        self._create(container)
        return f"az://{container}/some/place"

    def nowhere(self) -> str:
        return "az://no-such-container/some/place"

    def _create(self, container: str) -> None:
        """By hand: obstore makes no containers. The account is in the signed path twice, as emulators have it."""
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        path = f"/{_ACCOUNT}/{container}"
        signed = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{_ACCOUNT}{path}\nrestype:container"
        mark = base64.b64encode(hmac.digest(base64.b64decode(_KEY), signed.encode(), hashlib.sha256)).decode()
        headers = {"x-ms-date": date, "x-ms-version": _VERSION, "Authorization": f"SharedKey {_ACCOUNT}:{mark}"}
        request = Request(f"{self.endpoint}{path}?restype=container", method="PUT", headers=headers)
        with urlopen(request, timeout=10) as answer:
            assert answer.status == 201


@contextmanager
def serving(folder: Path) -> Iterator[Azurite]:
    """Start one; whoever uses it sets its `surroundings`."""
    words = (npm_program("azurite-blob"), "--inMemoryPersistence", "--silent", "--disableTelemetry", "--blobPort")
    with served(lambda port: (*words, str(port)), folder, os.environ) as port:
        yield Azurite(f"http://127.0.0.1:{port}")
