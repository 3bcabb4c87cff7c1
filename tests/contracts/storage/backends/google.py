"""Google's Cloud Storage as a stand-in of ours serves it, for no emulator to be had speaks its XML API.

obstore speaks nothing else to Google. gcp-storage-emulator 2026.7.19 was tried: it answers 501 to lists, deletes and
uploads in parts, gives no ETag, and writes whatever `x-goog-if-generation-match` says.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.request import Request, urlopen

from tests.contracts.storage.backends.google_stand_in import LOSING, TOKEN
from tests.contracts.storage.backends.serving import served

_PROGRAM = Path(__file__).with_name("google_stand_in.py")
_NUMBERS = count(1)


class Google:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    @property
    def surroundings(self) -> dict[str, str]:
        """What an operator would set."""
        return {"GOOGLE_BASE_URL": self.endpoint, "GOOGLE_BEARER_TOKEN": TOKEN, "NO_PROXY": "127.0.0.1"}

    def address(self) -> str:
        """Of a new, empty place in a bucket."""
        bucket = f"bucket-{next(_NUMBERS)}"
        self._ask("PUT", f"/{bucket}")
        return f"gs://{bucket}/some/place"

    def nowhere(self) -> str:
        return "gs://no-such-bucket/some/place"

    def lose_the_next_answer(self) -> None:
        """The next write is done and answered with 503."""
        self._ask("POST", LOSING)

    def unfinished(self, address: str) -> str:
        """The list of uploads that nobody has completed."""
        return self._ask("GET", f"/{address.removeprefix('gs://').partition('/')[0]}?uploads")

    def _ask(self, method: str, path: str) -> str:
        request = Request(f"{self.endpoint}{path}", method=method, headers={"Authorization": f"Bearer {TOKEN}"})
        with urlopen(request, timeout=10) as answer:
            return str(answer.read().decode())


@contextmanager
def serving(folder: Path) -> Iterator[Google]:
    """Start one; whoever uses it sets its `surroundings`."""
    words = (sys.executable, str(_PROGRAM))
    with served(lambda port: (*words, str(port)), folder, os.environ) as port:
        yield Google(f"http://127.0.0.1:{port}")
