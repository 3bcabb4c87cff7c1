"""Notices that the configuration or a prompt has changed, and loads it anew (G4).

Has no thread and no clock: whoever serves asks every few seconds. What a file holds decides, not its date: a mounted
ConfigMap may keep both date and size. Files are small, so reading them costs less than a wrong guess.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from hummingbird.config.configuration import Configuration
from hummingbird.config.load import Examined, content_of, examine
from hummingbird.domain.errors import ConfigurationBroken


class Watch:
    """`current` is always one that was sound as a whole; running work keeps the one it began with."""

    def __init__(self, path: Path | None, environment: Mapping[str, str]) -> None:
        """Raises ConfigurationBroken: one does not begin with a broken one."""
        self._path, self._environment = path, environment
        examined = examine(path, environment)
        self.current: Configuration = examined.sound()
        self._seen = _digests(examined)

    def look(self) -> Configuration | ConfigurationBroken | None:
        """The new configuration; or what is wrong with it, once, while the old one stays; None if nothing changed."""
        if self._path is None or all(_digest_of(file) == seen for file, seen in self._seen.items()):
            return None
        examined = examine(self._path, self._environment)
        self._seen = _digests(examined)
        try:
            self.current = examined.sound()
        except ConfigurationBroken as error:
            return error
        return self.current


def _digests(examined: Examined) -> dict[Path, str]:
    return {file: _digest(content) for file, content in examined.files.items()}


def _digest_of(file: Path) -> str:
    content = content_of(file)
    return _digest(content if isinstance(content, bytes) else None)


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()
