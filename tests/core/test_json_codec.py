"""Whatever is wrong with JSON, there is one error for it."""

from typing import Any

import msgspec
import pytest

from hummingbird.core.json_codec import (
    InvalidJson,
    JsonDecoder,
    decode_json,
    decode_json_as,
    decode_json_object,
    decode_lenient_json,
    encode_json,
)


class _Point(msgspec.Struct):
    x: int


BROKEN: list[bytes | str] = [b"", "{", b"[" * 200_000, "[" * 200_000, b'"\xff"', b"1" * 5_000, "\ud800"]


@pytest.mark.parametrize("content", BROKEN)
def test_broken_json_raises_the_same_error_everywhere(content: bytes | str) -> None:
    with pytest.raises(InvalidJson):
        decode_json(content)
    with pytest.raises(InvalidJson):
        decode_json_as(content, _Point)
    assert decode_json_object(content) is None
    with pytest.raises(InvalidJson):
        decode_lenient_json(content)


@pytest.mark.parametrize("content", ['{"x": "text"}', '{"x": "\\ud800"}', "[]", "null"])
def test_json_of_another_type_raises_it_too(content: str) -> None:
    with pytest.raises(InvalidJson):
        JsonDecoder[_Point](_Point).decode(content)


def test_objects_are_told_from_other_json() -> None:
    assert decode_json_object('{"x": 1}') == {"x": 1}
    assert decode_json_object("[1]") is None
    assert decode_json_as('{"x": 1}', _Point) == _Point(1)


def test_the_lenient_decoder_keeps_lone_surrogates() -> None:
    assert decode_lenient_json(b'{"text": "a\\ud800b"}') == {"text": "a\ud800b"}
    assert decode_json_object(b'{"text": "a\\ud800b"}') is None


def test_what_json_cannot_express_is_not_encoded() -> None:
    nested: list[Any] = []
    for _ in range(200_000):
        nested = [nested]
    for value in ("\ud800", object(), nested):
        with pytest.raises(InvalidJson):
            encode_json(value)
    assert encode_json({"x": [1, None]}) == b'{"x":[1,null]}'
