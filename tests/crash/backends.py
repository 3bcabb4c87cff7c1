"""What the suite is run on: by title, what opens sites there."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from tests.crash.cloud_site import CloudSite, stand_in
from tests.crash.sites import LocalSite, Site

Open: TypeAlias = Callable[[Path], Site]
LOCAL = "SQLite and local files"
CLOUD = "SQS and S3"


@contextmanager
def cloud() -> Iterator[Open]:
    with tempfile.TemporaryDirectory(prefix="crash-cloud-") as folder, stand_in(Path(folder)) as made:
        yield lambda home: CloudSite(home, made)


@contextmanager
def local() -> Iterator[Open]:
    yield LocalSite


BACKENDS: Mapping[str, Callable[[], AbstractContextManager[Open]]] = {LOCAL: local, CLOUD: cloud}
