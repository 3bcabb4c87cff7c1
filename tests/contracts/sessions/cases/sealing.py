"""A long journal is sealed in segments, whoever seals them, and what lacks one is damaged."""

import pytest

from hummingbird.core.errors import JournalDamaged, SessionTaken, SessionUnreadable
from hummingbird.core.protocols.storage import ObjectVersion
from tests.contracts.sessions.stage import OPENED, Stage, committed, said, segments
from tests.contracts.sessions.unreliable import UnreliableObjects


async def _sealed(stage: Stage, count: int = 12) -> list[str]:
    stage.segments_hold(200)
    session = await stage.opened()
    for number in range(count):
        await committed(session, *said(number))
    await session.release()
    found = list(segments(await stage.stored()))
    assert len(found) >= 3
    return found


async def a_long_journal_is_read_whole_from_its_segments(stage: Stage) -> None:
    await _sealed(stage)
    assert await stage.entries() == list(said(*range(12)))
    assert list((await stage.opened()).journal.entries()) == list(said(*range(12)))


async def what_is_sealed_never_changes(stage: Stage) -> None:
    names = await _sealed(stage)
    before = await stage.stored()
    await stage.told(*said(12, 13, 14, 15))
    after = await stage.stored()
    assert {name: after[name] for name in names} == {name: before[name] for name in names}


async def a_commit_writes_no_more_than_the_tail_however_long_the_journal_is(stage: Stage) -> None:
    await _sealed(stage, 40)
    (tail,) = [content for name, content in (await stage.stored()).items() if name.endswith("tail.jsonl")]
    assert len(tail) < 200 + 600


async def a_segment_of_somebody_who_died_before_saying_so_is_taken(stage: Stage) -> None:
    stage.segments_hold(200)
    one = await stage.opened()
    await committed(one, *said(0, 1, 2))
    with stage.patch.context() as patch:
        patch.setattr(UnreliableObjects, "compare_and_swap", _seals_alone)
        with pytest.raises(_DiedError):
            await committed(one, *said(7))
    assert len(list(segments(await stage.stored()))) == 1
    assert await stage.entries() == list(said(0, 1, 2))
    stage.leases_run_out()
    other = await stage.opened()
    await committed(other, *said(3))
    await committed(other, *said(4, 5, 6))
    await other.release()
    assert await stage.entries() == list(said(*range(7)))


async def a_shorter_segment_of_somebody_who_died_is_taken_as_it_is(stage: Stage) -> None:
    """One that had smaller ones."""
    stage.segments_hold(200)
    one = await stage.opened()
    await committed(one, *said(0, 1, 2))
    with stage.patch.context() as patch:
        patch.setattr(UnreliableObjects, "compare_and_swap", _seals_alone)
        with pytest.raises(_DiedError):
            await committed(one, *said(7))
    (name,) = segments(await stage.stored())
    await stage.change(lambda content: content.split(b"\n")[0] + b"\n", name.partition("a-session/")[2])
    stage.leases_run_out()
    await stage.told(*said(3, 4, 5))
    await stage.told(*said(6))
    assert await stage.entries() == list(said(*range(7)))
    with pytest.raises(SessionTaken):  # it only hung, and seals what it has once more
        await one.journal.commit()
    assert await stage.entries() == list(said(*range(7)))


async def whoever_hung_seals_nothing_over_what_others_sealed(stage: Stage) -> None:
    """Of a version that has smaller ones."""
    stage.segments_hold(200)
    one = await stage.opened()
    await committed(one, *said(0, 1, 2))
    stage.leases_run_out()
    stage.segments_hold(10_000)
    other = await stage.opened()
    await committed(other, *said(3, 4, 5))
    stage.segments_hold(200)
    await committed(other, *said(6))
    before = await stage.stored()
    with pytest.raises(SessionTaken):
        await committed(one, *said(7))
    assert await stage.stored() == before
    assert await stage.entries() == list(said(*range(7)))


async def a_journal_that_lacks_a_segment_is_damaged(stage: Stage) -> None:
    for missing in await _sealed(stage):
        content = (await stage.stored())[missing]
        await stage.site.objects.delete(missing)
        await _refused(stage, "lacks the entries after")
        await stage.site.objects.put(missing, content)
    assert await stage.entries() == list(said(*range(12)))


async def a_segment_that_is_cut_off_is_damage(stage: Stage) -> None:
    for name in await _sealed(stage):
        content = (await stage.stored())[name]
        await stage.site.objects.put(name, content[:-5])
        await _refused(stage, "is cut off")
        await stage.site.objects.put(name, content[: content.index(b"\n") + 1])
        await _refused(stage, "lacks the entries after")
        await stage.site.objects.put(name, content)


async def a_tail_that_is_cut_off_is_damage(stage: Stage) -> None:
    await stage.told(OPENED, *said(1))
    await stage.change(lambda content: content[:-5])
    await _refused(stage, "is cut off")


async def a_tail_that_does_not_begin_as_one_is_damage(stage: Stage) -> None:
    for content in (b"\n", b"{}\n", b"\xff\n", b'{"tail":1,"serial":"x"}\n', b"[]\n"):
        await stage.told(OPENED)
        await stage.change(lambda _, given=content: given)  # type: ignore[misc] # mypy: a lambda's default
        await _refused(stage, "has no valid head")
        assert await stage.sessions.remove("a-session")


async def a_tail_of_a_newer_version_is_told_as_one(stage: Stage) -> None:
    await stage.told(OPENED)
    await stage.change(lambda content: content.replace(b'"tail":1', b'"tail":2,"new":true'))
    with pytest.raises(SessionUnreadable, match="newer version"):
        await stage.opened()
    with pytest.raises(SessionUnreadable, match="newer version"):
        await stage.entries()


async def _refused(stage: Stage, words: str) -> None:
    before = {name: content.split(b"\n")[1:] for name, content in (await stage.stored()).items()}
    for _ in range(2):  # the first one lets go of it
        with pytest.raises(JournalDamaged, match=words):
            await stage.opened()
    with pytest.raises(JournalDamaged, match=words):
        await stage.entries()
    assert {name: content.split(b"\n")[1:] for name, content in (await stage.stored()).items()} == before


class _DiedError(Exception):
    """The process is no more."""


async def _seals_alone(
    between: UnreliableObjects, name: str, content: bytes, known: ObjectVersion | None
) -> ObjectVersion | None:
    """Dies between sealing and saying so."""
    if name.endswith("tail.jsonl"):
        raise _DiedError
    return await between._objects.compare_and_swap(name, content, known)
