"""A name that looks like a bot's neither gives trust nor takes it away: ids and roles decide, as GitLab says.

GitLab lets people choose names such as `project_123_bot`, and calls the users of access tokens the same way.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.orders import WorkOrder
from hummingbird.gitlab.read.discussion_filter import WITHHELD, DiscussionFilter
from hummingbird.lab.gitlab.records import Discussion, Member, User
from hummingbird.lab.gitlab.webhook_payloads import note_event
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.config.effects.desk import BOT, Desk, at_desk

pytestmark = pytest.mark.every_case

NAMES = ("project_123_bot", "project_10174980_bot_5f1c9e0b", "group_9_bot_abc", "someone[bot]", "ghost", "renovate-bot")
NEWCOMER = 501
COMMAND = "/hummingbird analyze-failures"
MARKER = '<!-- hummingbird-session: {"id":"1","wf":"analyze-failures","sha":"a"} -->'
named = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.service.event_stage.NOTE_APPEARS_S", 0.0)


def join(world: GitLabWorld, name: str, level: int, *, bot: bool = False) -> None:
    world.users.append(User(NEWCOMER, name, name, bot=bot))
    if level:
        world.project.members[NEWCOMER] = Member(NEWCOMER, level)


def write(world: GitLabWorld, text: str, claims: dict[str, Any], thread: str = "") -> bytes:
    """The event of a note by the newcomer; `claims` is what its sender says of the user."""
    request = world.merge_request
    written = world.new_note(world.user(NEWCOMER), text, note_type="DiscussionNote" if thread else None)
    found = _thread(world, thread) if thread else world.add_discussion(request, written, individual=True)
    if thread:
        found.notes.append(written)
    event = note_event(world, request, found, written, action="create")
    event["user"].update(claims)
    return json.dumps(event).encode()


def _thread(world: GitLabWorld, thread_id: str) -> Discussion:
    return next(each for each in world.merge_request.discussions if each.id == thread_id)


async def say(desk: Desk, text: str = COMMAND, *, thread: str = "", **claims: Any) -> tuple[WorkOrder, ...]:
    """What the first stage makes of the newcomer's words."""
    return await desk.hears(desk.world(partial(write, text=text, claims=claims, thread=thread)))


@named
async def test_a_developer_is_heard_whatever_the_name(name: str, tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        desk.world(partial(join, name=name, level=30))
        (order,) = await say(desk)
        await desk.carries_out(order)
        assert [ran.actor_id for ran in desk.answering.ran] == [NEWCOMER]


@named
async def test_an_outsider_is_refused_whatever_the_name(name: str, tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        desk.world(partial(join, name=name, level=0))
        assert await say(desk) == ()
        assert ["role Developer or higher" in each.body for each in desk.notes] == [True]


@pytest.mark.parametrize(("level", "orders"), [(30, 1), (20, 0)], ids=["developer", "reporter"])
async def test_the_user_of_an_access_token_counts_by_its_role(level: int, orders: int, tmp_path: Path) -> None:
    """`bot: true` in GitLab's answer is no role: a program that was made a Developer may ask."""
    async with at_desk(tmp_path) as desk:
        desk.world(partial(join, name="project_123_bot_0c7e41d9", level=level, bot=True))
        assert len(await say(desk)) == orders


@named
async def test_automatic_runs_go_by_role_and_not_by_name(name: str, tmp_path: Path) -> None:
    def own_everything(world: GitLabWorld) -> None:
        world.merge_request.author_id = NEWCOMER
        for pipeline in world.pipelines:
            pipeline.user_id = NEWCOMER

    async with at_desk(tmp_path) as desk:
        desk.world(partial(join, name=name, level=30))
        desk.world(own_everything)
        (order,) = await desk.orders()
        await desk.carries_out(order)
        assert len(desk.answering.ran) == 1


@pytest.mark.parametrize("level", [30, 0], ids=["developer", "outsider"])
async def test_the_bot_is_known_by_its_id_and_not_by_its_name(level: int, tmp_path: Path) -> None:
    """Somebody with the very name of the bot: a Developer is not ignored as if they were it, and an outsider's marker
    opens no session. GitLab keeps names unique; an event need not."""
    async with at_desk(tmp_path) as desk:
        own = desk.world(lambda world: world.user(BOT).username)
        desk.world(partial(join, name="sparrow", level=level))
        assert len(await say(desk, username=own, name=own)) == (1 if level else 0)
        await say(desk, MARKER, username=own)
        theirs = desk.world(lambda world: world.merge_request.discussions[-1].id)
        assert await say(desk, "Go on.", thread=theirs, username=own) == ()


@named
def test_whose_words_the_model_reads_is_not_decided_by_names(name: str) -> None:
    developer, outsider, bot = 11, 12, 21
    readers = DiscussionFilter(lambda user: 30 if user == developer else 0, frozenset({bot}), "hummingbird-session")

    def by(author: int) -> dict[str, Any]:
        return {"id": author, "author": {"id": author, "username": name, "bot": True}, "body": f"words of {author}"}

    shown = readers.filter_thread({"id": "ab" * 20, "notes": [by(outsider), by(developer), by(bot)]})
    assert shown is not None
    assert [each["text"] for each in shown["notes"]] == [WITHHELD, "words of 11", "words of 21"]
    assert [each.get("by_this_agent", False) for each in shown["notes"]] == [False, False, True]
    assert readers.filter_thread({"id": "cd" * 20, "notes": [by(outsider)]}) is None
