"""Decode and encode JSON, with one error for everything that can be wrong with it.

What others write may be no JSON at all, nested too deeply, or hold numbers and characters that nothing can hold.
"""

import json
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class InvalidJson(ValueError):
    """The text is not JSON, is nested too deeply, or is not of the expected type; or a value cannot be JSON."""


class JsonDecoder(Generic[T]):
    """Decode JSON into a type that msgspec knows, or a union of such types."""

    def __init__(self, expected: Any) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(expected)

    def decode(self, content: bytes | str) -> T:
        """Return the value. Raises InvalidJson."""
        try:
            return self._decoder.decode(content)
        except RecursionError as error:
            raise InvalidJson("it is nested too deeply") from error
        except ValueError as error:  # msgspec's own errors, and those of Unicode
            raise InvalidJson(str(error)) from error


_any_decoder: JsonDecoder[Any] = JsonDecoder(Any)
decode_json = _any_decoder.decode


def decode_json_as(content: bytes | str, expected: type[T]) -> T:
    """Return the value, of this type. Raises InvalidJson."""
    return JsonDecoder[T](expected).decode(content)


def decode_json_object(content: bytes | str) -> dict[str, Any] | None:
    """Return the object, or None for anything else, whether JSON or not."""
    try:
        found = decode_json(content)
    except InvalidJson:
        return None
    return found if isinstance(found, dict) else None


def decode_lenient_json(content: bytes | str) -> Any:
    """Decode what Python's own parser accepts, too: lone surrogates, NaN, and numbers of any size.

    JSON can escape a lone surrogate, and UTF-8 cannot encode it. Raises InvalidJson.
    """
    try:
        return msgspec.json.decode(content)
    except RecursionError as error:
        raise InvalidJson("the JSON is nested too deeply") from error
    except ValueError:
        pass
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"this is not JSON: {error}") from error


def encode_json(value: Any) -> bytes:
    """Encode a value that may hold anything. Raises InvalidJson for what JSON cannot express."""
    try:
        return msgspec.json.encode(value)
    except RecursionError as error:
        raise InvalidJson("it is nested too deeply") from error
    except (TypeError, ValueError) as error:
        raise InvalidJson(str(error)) from error
