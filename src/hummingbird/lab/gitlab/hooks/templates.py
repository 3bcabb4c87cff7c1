"""What a webhook with a template of its own sends in place of the standard body (facts 1). Pure."""

import json
import re
from typing import Any

from hummingbird.lab.gitlab.records import Raw

PLACE = re.compile(r"\{\{ *([^{}\s]+) *\}\}")


def rendered(template: str, payload: Raw) -> bytes:
    """`{{project.id}}` stands for what the event says there, and for nothing where it says nothing.

    Raises ValueError for what is no JSON afterwards."""
    text = PLACE.sub(lambda place: _inside(_found(payload, place[1].split("."))), template)
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")).encode()


def _found(value: Any, names: list[str]) -> Any:
    for name in names:
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _inside(value: Any) -> str:
    """As it stands within quotation marks, or without them if it is no text."""
    if value is None:
        return ""
    told = json.dumps(value, ensure_ascii=False)
    return told[1:-1] if isinstance(value, str) else told
