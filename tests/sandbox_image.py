"""The image that tests with podman share: made once a machine and kept in podman's own store, under a name that changes
with its recipe. `python -m tests.sandbox_image` makes it before the tests, where nothing waits for it."""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hummingbird.core.errors import HummingbirdError
from hummingbird.sandboxes.image_build import build_image, recipe_digest
from tests.real_parts import missing

_LOCK = Path(tempfile.gettempdir()) / f"hummingbird-test-image-{os.getuid()}.lock"
NAME = f"localhost/hummingbird-sandbox-test:{recipe_digest()}"


def sandbox_image() -> str:
    """Its name. Of several processes one makes it while the others wait."""
    if shutil.which("podman") is None:
        missing("podman is not installed; `scripts/real-parts` as root installs it")
    try:
        _make_once()
    except HummingbirdError as error:
        missing(f"the sandbox image cannot be created: {error}")
    return NAME


def _make_once() -> None:
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if subprocess.run(["podman", "image", "exists", NAME], check=False).returncode:
            asyncio.run(build_image(NAME, environment=os.environ, report_line=_say, from_packages=True))


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    try:
        _make_once()
    except HummingbirdError as fault:
        sys.exit(str(fault))
