"""Names as labels: not too many, not too long, and none that a stranger could have made up (O1).

Every new value of a label is a new series that somebody has to keep for weeks.
"""

import re

from hummingbird.domain.telemetry_limits import LABEL_CHARS, LABEL_VALUES
from hummingbird.domain.text import plain, shortened

OTHER = "other"
_NAME = re.compile(r"[\w.:/@+-]+", re.ASCII)


def as_spelt(name: str) -> str:
    """A name of ours that a model may have spelt in its own way, at any length: then it is none."""
    return name if len(name) <= LABEL_CHARS and _NAME.fullmatch(name) else OTHER


class Labels:
    """Of one sort: workflows, models or tools. The first `most` have names of their own."""

    def __init__(self, most: int = LABEL_VALUES) -> None:
        self._most = most
        self._known: dict[str, str] = {}

    def learned(self, name: str) -> str:
        """For a name that is ours: of the configuration, or of a tool that there is."""
        found = self._known.get(name)
        if found is not None:
            return found
        if len(self._known) >= self._most:
            return OTHER
        label = shortened(plain(name), LABEL_CHARS) or OTHER
        self._known[name] = label
        return label

    def learned_name(self, name: str) -> str:
        """For one of ours as a model wrote it."""
        return self.learned(as_spelt(name))

    def known(self, name: str) -> str:
        """For a name that a model may have made up."""
        return self._known.get(name, OTHER)
