"""What a provider sent, read as JSON."""

import pytest

from hummingbird.core.errors import ProviderReplyUnreadable
from hummingbird.models.transport import decode_reply


@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff", b"[" * 100_000, b'{"a":'])
def test_what_is_no_json_is_unreadable(content: bytes) -> None:
    """Whatever it is, it is not our crash."""
    with pytest.raises(ProviderReplyUnreadable):
        decode_reply(content)


def test_a_lone_surrogate_does_not_cost_the_answer() -> None:
    assert decode_reply(b'{"text": "a\\ud800b"}') == {"text": "a?b"}
