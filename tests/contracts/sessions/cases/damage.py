"""What cannot be read is a sentence, and stays as it is."""

import pytest

from hummingbird.core.errors import JournalDamaged, SessionUnreadable
from tests.contracts.sessions.stage import OPENED, Stage, said, segments


async def _stays(stage: Stage, kind: type[Exception], words: str) -> None:
    """Also for whoever comes next: the first one has let go of it."""
    before = _without_heads(await stage.stored())
    for _ in range(2):
        with pytest.raises(kind, match=words):
            await stage.opened()
        with pytest.raises(kind, match=words):
            await stage.entries()
    assert _without_heads(await stage.stored()) == before


def _without_heads(stored: dict[str, bytes]) -> dict[str, list[bytes]]:
    """Who opens a bucket's tail says so in its first line before all that is there has been read."""
    return {name: content.split(b"\n")[name.endswith("tail.jsonl") :] for name, content in stored.items()}


async def a_line_that_is_no_json_is_damage(stage: Stage) -> None:
    await stage.told(OPENED, *said(1, 2))
    await stage.change(lambda content: content.replace(b'"text":"1:', b'"text":1:'))
    await _stays(stage, JournalDamaged, "Line 2 of the journal is not JSON")


async def a_line_that_is_no_entry_is_damage(stage: Stage) -> None:
    await stage.told(OPENED, *said(1))
    await stage.change(lambda content: content + b'{"kind":"nobody_knows"}\n')
    await _stays(stage, JournalDamaged, "Line 3 of the journal is not an entry we know")


async def a_newer_format_is_told_as_one(stage: Stage) -> None:
    await stage.told(OPENED, *said(1))
    await stage.change(lambda content: content.replace(b'"format":1', b'"format":99'))
    await _stays(stage, SessionUnreadable, "format 99, newer than .*: update")


async def nothing_of_a_damaged_session_is_sealed_away_either(stage: Stage) -> None:
    await stage.told(OPENED, *said(1, 2))
    stage.segments_hold(100)
    await stage.change(lambda content: content.replace(b"user_said", b"user_sa\xff\xff"))
    await _stays(stage, JournalDamaged, "of the journal is not JSON")
    assert not list(segments(await stage.stored()))
