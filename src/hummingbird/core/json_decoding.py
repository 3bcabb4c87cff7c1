"""Decode JSON from elsewhere, with one error for all that can be wrong with it."""

import json
from typing import Any

import msgspec


class InvalidJson(ValueError):
    """The text is not JSON, or nested too deeply, or holds a number that is too long."""


def decode_json(content: bytes | str) -> Any:
    """Decode JSON. Lone surrogates, which JSON can escape and UTF-8 cannot encode, are kept.

    Raises InvalidJson.
    """
    try:
        return msgspec.json.decode(content)
    except RecursionError as error:
        raise InvalidJson("the JSON is nested too deeply") from error
    except ValueError:
        pass
    try:
        return json.loads(content)  # msgspec refuses lone surrogates
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"this is not JSON: {error}") from error
