"""Votes on results: who counts, what is asked of GitLab and how often, and that nothing of it can hurt anything."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from hummingbird.config.configuration import Configuration
from hummingbird.config.settings import ProjectSettings
from hummingbird.core.errors import (
    CredentialRefused,
    GitLabNotFound,
    GitLabRateLimited,
    GitLabRequestRefused,
    GitLabUnavailable,
    MissingSetting,
)
from hummingbird.core.protocols.storage import VotableNote, VoteStore
from hummingbird.core.votes import (
    HARVEST_BATCH,
    HARVEST_CAP_S,
    HARVEST_NOTES,
    HARVEST_PAUSE_S,
    HARVEST_S,
    VOTERS_ASKED,
    VOTES_EVENT_PAUSE_S,
    VOTES_FIRST_S,
    VOTES_PAUSE_S,
    VOTES_YOUNG_PAUSE_S,
    EmojiReaction,
    VoteCount,
)
from hummingbird.gitlab.access import DEVELOPER
from hummingbird.gitlab.write.protocol import GitLabWriter, GitLabWriters
from hummingbird.service.votes import VotePoller, VoteTracker, read_votes
from hummingbird.storage.vote_store import SqliteVoteStore
from tests.service.publication.stage import WORKFLOW, configured, ordered
from tests.standins.scripted_model import ScriptedClock

BOT, DEV, OTHER, GUEST = 1, 2, 3, 4
LEVELS = {DEV: DEVELOPER, OTHER: DEVELOPER + 10, GUEST: DEVELOPER - 10, BOT: DEVELOPER}
PROJECT = ordered().project


@dataclass
class Emoji:
    """A forge that knows of nothing but emoji and people. `trouble` is raised by note, as often as it is named."""

    on: dict[int, list[EmojiReaction]] = field(default_factory=dict)
    trouble: dict[int, list[Exception]] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    people: list[int] = field(default_factory=list)

    async def bot_ids(self) -> frozenset[int]:
        return frozenset({BOT})

    async def access_level(self, user_id: int) -> int:
        self.people.append(user_id)
        return LEVELS.get(user_id, 0)

    async def reactions(self, iid: int, note_id: int) -> Sequence[EmojiReaction]:
        self.asked.append(note_id)
        if self.trouble.get(note_id):
            raise self.trouble[note_id].pop(0)
        return self.on.get(note_id, [])

    def writer_for(self, project: str) -> "Emoji":
        assert project == PROJECT
        return self


@dataclass
class Field:
    store: VoteStore
    emoji: Emoji
    clock: ScriptedClock
    told: list[Any] = field(default_factory=list)
    configuration: Configuration = field(default_factory=configured)

    @property
    def harvest(self) -> VotePoller:
        forges = cast(GitLabWriters, self.emoji)
        return VotePoller(lambda: self.configuration, lambda _: forges, self.store, self.clock, self.told.append)

    @property
    def opinions(self) -> VoteTracker:
        return VoteTracker(self.store, self.clock)

    async def posted(self, *numbers: int, workflow: str = WORKFLOW) -> None:
        order = ordered(workflow=workflow)
        for number in numbers:
            await self.opinions.remember_note(order, number, "digest")

    async def votes(self, number: int) -> VoteCount:
        found = await self.store.find_note(PROJECT, number)
        assert found is not None
        return found.votes


@pytest.fixture
def there(tmp_path: Path) -> Field:
    return Field(SqliteVoteStore(tmp_path / "votes.sqlite"), Emoji(), ScriptedClock())


def thumbs(*people: int, name: str = "thumbsup") -> list[EmojiReaction]:
    return [EmojiReaction(name, person) for person in people]


def note(number: int = 5) -> VotableNote:
    return VotableNote(
        project=PROJECT, iid=7, note_id=number, workflow="w", model="m", session_id="s", posted_at=1_000_000.0
    )


async def test_those_count_who_could_make_us_work_and_nobody_else() -> None:
    emoji = Emoji({5: [*thumbs(DEV, GUEST, 99, BOT), *thumbs(OTHER, name="thumbsdown")]})
    assert await read_votes(cast(GitLabWriter, emoji), note()) == VoteCount(1, 1)


async def test_a_crowd_of_strangers_costs_no_more_than_so_many_questions() -> None:
    emoji = Emoji({5: thumbs(*range(1_000, 3_000))})
    assert await read_votes(cast(GitLabWriter, emoji), note()) == VoteCount()
    assert len(emoji.people) == VOTERS_ASKED


async def test_nobody_is_asked_about_whose_emoji_is_no_thumb() -> None:
    emoji = Emoji({5: [EmojiReaction("eyes", DEV), EmojiReaction("<script>", GUEST)]})
    assert await read_votes(cast(GitLabWriter, emoji), note()) == VoteCount()
    assert emoji.people == []


@pytest.mark.thorough
async def test_a_result_is_looked_at_hourly_for_two_days_and_then_daily(there: Field) -> None:
    await there.posted(5)
    began = there.clock.now()
    looks: list[float] = []
    while there.clock.now() < began + 20 * 86_400:
        before = len(there.emoji.asked)
        await there.harvest.poll_once()
        looks += [there.clock.now() - began] * (len(there.emoji.asked) - before)
        there.clock.advance(HARVEST_S if there.clock.now() < began + 2 * 86_400 else 3600)
    assert VOTES_FIRST_S <= looks[0] < VOTES_FIRST_S + 2 * HARVEST_S
    young = [at for at in looks if at < 2 * 86_400]
    assert len(young) == pytest.approx(48 * VOTES_YOUNG_PAUSE_S / (VOTES_YOUNG_PAUSE_S + HARVEST_S / 2), abs=4)
    assert len(looks) - len(young) == pytest.approx(12 * 86_400 / VOTES_PAUSE_S, abs=1)


async def test_votes_are_kept_as_they_are_now_also_when_somebody_takes_theirs_back(there: Field) -> None:
    await there.posted(5)
    there.emoji.on[5] = thumbs(DEV, OTHER)
    there.clock.advance(VOTES_FIRST_S)
    assert await there.harvest.poll_once()
    assert await there.votes(5) == VoteCount(2, 0)
    there.emoji.on[5] = thumbs(DEV, name="thumbsdown")
    there.clock.advance(VOTES_YOUNG_PAUSE_S)
    assert await there.harvest.poll_once()
    assert await there.votes(5) == VoteCount(0, 1)


@pytest.mark.thorough
async def test_a_round_asks_about_so_many_notes_with_pauses_and_the_next_one_goes_on(there: Field) -> None:
    await there.posted(*range(1, HARVEST_NOTES + 6))
    there.clock.advance(VOTES_FIRST_S)
    assert await there.harvest.poll_once()
    assert len(there.emoji.asked) == HARVEST_NOTES
    assert there.clock.naps == [HARVEST_PAUSE_S] * HARVEST_NOTES
    assert await there.harvest.poll_once()
    assert len(set(there.emoji.asked)) == len(there.emoji.asked) == HARVEST_NOTES + 5


@pytest.mark.parametrize("trouble", [GitLabRateLimited("slow down"), GitLabUnavailable("away")])
async def test_a_gitlab_that_has_no_time_ends_the_round_at_once(there: Field, trouble: Exception) -> None:
    await there.posted(*range(1, 30))
    there.clock.advance(VOTES_FIRST_S)
    there.emoji.trouble = {number: [trouble] for number in range(1, 30)}
    assert not await there.harvest.poll_once()
    assert len(there.emoji.asked) == 1
    assert len(await there.store.claim_due_notes(there.clock.now(), 99)) == 29 - HARVEST_BATCH, (
        "the others are left for later"
    )


@pytest.mark.parametrize(
    "trouble",
    [GitLabNotFound("gone"), GitLabRequestRefused("no"), CredentialRefused("expired"), MissingSetting("no token")],
)
async def test_a_note_that_cannot_be_read_keeps_its_votes_and_no_other_note_waits(
    there: Field, trouble: Exception
) -> None:
    await there.posted(1, 2)
    there.emoji.on = {1: thumbs(DEV), 2: thumbs(DEV)}
    there.clock.advance(VOTES_FIRST_S)
    assert await there.harvest.poll_once()
    there.emoji.on[2] = thumbs(DEV, name="thumbsdown")
    there.emoji.trouble = {1: [trouble]}
    there.clock.advance(VOTES_YOUNG_PAUSE_S)
    assert await there.harvest.poll_once()
    assert (await there.votes(1), await there.votes(2)) == (VoteCount(1, 0), VoteCount(0, 1))


async def test_a_project_without_workflows_is_not_asked_about(there: Field) -> None:
    await there.posted(1)
    there.configuration = configured(projects={"other/project": ProjectSettings()})
    there.clock.advance(VOTES_FIRST_S)
    assert await there.harvest.poll_once()
    assert there.emoji.asked == []


async def test_those_who_watch_hear_the_votes_of_each_workflow(there: Field) -> None:
    await there.posted(1, 2)
    await there.posted(3, workflow="code-review")
    there.emoji.on = {1: thumbs(DEV), 2: thumbs(DEV, OTHER), 3: thumbs(OTHER, name="-1")}
    there.clock.advance(VOTES_FIRST_S)
    await there.harvest.poll_once()
    assert there.told == [{ordered().workflow: VoteCount(3, 0), "code-review": VoteCount(0, 1)}]


class Enough(Exception):
    """Ends what has no end."""


class CountedClock(ScriptedClock):
    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if len(self.naps) >= 8:
            raise Enough


async def test_the_rest_grows_while_gitlab_or_the_store_is_in_trouble(
    there: Field, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"nonsense" * 1_000)
    there.store, there.clock = SqliteVoteStore(broken), CountedClock()
    with caplog.at_level(logging.WARNING), pytest.raises(Enough):
        await there.harvest.poll_forever()
    assert there.clock.naps[:3] == [2 * HARVEST_S, 4 * HARVEST_S, 8 * HARVEST_S]
    assert there.clock.naps[-1] == HARVEST_CAP_S
    assert "is damaged and cannot be used as the record of votes on notes; move it away." in caplog.messages[0]


async def test_a_broken_store_hurts_no_run_and_no_event(
    there: Field, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"nonsense" * 1_000)
    there.store = SqliteVoteStore(broken)
    with caplog.at_level(logging.WARNING):
        await there.posted(5)
    assert "will not be counted" in caplog.messages[0]
    assert "votes cannot be stored" in await there.opinions.recount(cast(GitLabWriter, there.emoji), PROJECT, 5)


async def test_an_event_about_a_result_of_ours_is_counted_at_once(there: Field) -> None:
    await there.posted(5)
    there.emoji.on[5] = thumbs(DEV)
    there.clock.advance(60)
    assert (
        await there.opinions.recount(cast(GitLabWriter, there.emoji), PROJECT, 5)
        == "the note has 1 thumbs up and 0 down"
    )
    assert await there.votes(5) == VoteCount(1, 0)


async def test_an_event_about_any_other_note_asks_gitlab_nothing(there: Field) -> None:
    await there.posted(5)
    for project, number in (("other/project", 5), (PROJECT, 6)):
        said = await there.opinions.recount(cast(GitLabWriter, there.emoji), project, number)
        assert said == "the emoji is not on a result of ours"
    assert there.emoji.asked == []


async def test_whoever_switches_a_thumb_on_and_off_costs_one_look_and_what_is_left_is_seen_in_the_next_round(
    there: Field,
) -> None:
    await there.posted(5)
    there.clock.advance(60)
    for _ in range(20):
        await there.opinions.recount(cast(GitLabWriter, there.emoji), PROJECT, 5)
    assert there.emoji.asked == [5]
    there.emoji.on[5] = thumbs(DEV, name="thumbsdown")
    await there.harvest.poll_once()
    assert await there.votes(5) == VoteCount(0, 1)
    there.emoji.asked = [5]
    there.clock.advance(VOTES_EVENT_PAUSE_S)
    await there.opinions.recount(cast(GitLabWriter, there.emoji), PROJECT, 5)
    assert there.emoji.asked == [5, 5]


async def test_where_nothing_is_kept_nothing_is_asked() -> None:
    emoji, opinions = Emoji(), VoteTracker(None, ScriptedClock())
    await opinions.remember_note(ordered(), 5, "digest")
    assert await opinions.recount(cast(GitLabWriter, emoji), PROJECT, 5) == "the emoji is not on a result of ours"
    assert emoji.asked == []
