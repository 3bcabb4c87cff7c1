"""A vendor's no, before it is put into that vendor's words.

Rules raise it, surfaces print it. It knows no dialect beyond the fields that all of them have.
"""

from collections.abc import Container, Mapping
from typing import Any, TypeGuard

Raw = dict[str, Any]


class Refusal(Exception):
    """An error answer: HTTP status, the vendor's error type, code and parameter, and the sentence."""

    def __init__(
        self,
        status: int,
        type_: str,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type_
        self.message = message
        self.code = code
        self.param = param
        self.headers = dict(headers or {})


def keys(text: str) -> frozenset[str]:
    """The words of a line as a set: the tables of allowed fields read better so."""
    return frozenset(text.split())


def one_of(value: object, allowed: Container[str]) -> TypeGuard[str]:
    """Whether it is one of these words; what is no word, a list for example, is none."""
    return isinstance(value, str) and value in allowed


def extra_keys(value: Raw, allowed: frozenset[str]) -> list[str]:
    return [key for key in value if key not in allowed]
