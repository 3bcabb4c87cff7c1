"""Where the sessions of editors began, so that an editor is shown those of its project (session/list). A line of JSON
each, appended in one write. A file that cannot be used costs this order and nothing else: any session can be gone on
with anywhere (C4).
"""

import json
import logging
import os
from pathlib import Path

from hummingbird.chat.acp.limits import FOLDERS_BYTES

_log = logging.getLogger("hummingbird")


class Folders:
    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, session_id: str, folder: Path) -> None:
        line = json.dumps([session_id, str(folder)]).encode() + b"\n"
        try:
            if self._path.exists() and self._path.stat().st_size > FOLDERS_BYTES:
                self._shorten()
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            _log.warning("Where sessions began cannot be noted in %s: %s", self._path, error.strerror)

    def known(self) -> dict[str, str]:
        """Folders by session ids; the last word counts."""
        try:
            lines = self._path.read_bytes()[-2 * FOLDERS_BYTES :].splitlines()
        except OSError:
            return {}
        return dict(pair for line in lines if (pair := _pair(line)) is not None)

    def _shorten(self) -> None:
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        kept = self._path.read_bytes()[-FOLDERS_BYTES // 2 :].split(b"\n", 1)[-1]
        beside.write_bytes(kept)
        beside.replace(self._path)


def _pair(line: bytes) -> tuple[str, str] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match found:
        case [str(session_id), str(folder)]:
            return session_id, folder
        case _:
            return None
