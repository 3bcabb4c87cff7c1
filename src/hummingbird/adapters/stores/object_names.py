"""Names of large things: parts with `/` between them that lead nowhere but below the store's own place."""

import re

from hummingbird.domain.errors import ObjectsUnusable
from hummingbird.domain.limits import OBJECT_NAME_CHARS

_PART = re.compile(r"[A-Za-z0-9_.-]{1,200}", re.ASCII)


def check_name(name: str) -> None:
    """Raises ObjectsUnusable."""
    parts = name.split("/")
    if len(name) > OBJECT_NAME_CHARS or not all(_PART.fullmatch(part) and part.strip(".") for part in parts):
        raise ObjectsUnusable(
            f"An object's name is parts of letters, digits, -, _ and . with / between them, not {name[:80]!a}; "
            "use a hash of it."
        )


def check_prefix(prefix: str) -> None:
    """A whole part or several; empty for everything. Raises ObjectsUnusable."""
    if prefix:
        check_name(prefix.removesuffix("/"))
