"""What a provider sent, read as JSON."""

import pytest

from hummingbird.adapters.models.transport import decoded
from hummingbird.domain.errors import ReplyUnreadable


@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff", b"[" * 100_000, b'{"a":'])
def test_what_is_no_json_is_unreadable(content: bytes) -> None:
    """M2, L13: whatever it is, it is not our crash."""
    with pytest.raises(ReplyUnreadable):
        decoded(content)


def test_a_lone_surrogate_does_not_cost_the_answer() -> None:
    """M2"""
    assert decoded(b'{"text": "a\\ud800b"}') == {"text": "a?b"}
