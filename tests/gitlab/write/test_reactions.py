"""Emoji on notes as the forge reads them: pages, strangers' names, notes that are gone, a GitLab in trouble."""

import pytest

from hummingbird.core.errors import (
    CredentialRefused,
    GitLabNotFound,
    GitLabRateLimited,
    GitLabRequestRefused,
    GitLabUnavailable,
)
from hummingbird.core.limits import FORGE_ATTEMPTS, FORGE_PER_PAGE
from hummingbird.core.votes import REACTIONS_READ, EmojiReaction
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.lab.gitlab.records import Award, Note
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.gitlab.write.writer_stage import MR, asked, forging

NOTE = 72
AT = "2026-03-02T08:10:00.000Z"
PATH = f"{MR}/notes/{NOTE}/award_emoji"
NAMES = ["thumbsup", "<script>alert(1)</script>", "thumbsdown_tone5", "x" * 5_000, "", "\u202eup"]


def note(world: GitLabWorld) -> Note:
    return next(each for each in world.merge_request.notes if each.id == NOTE)


def awarded(lab: GitLabLab, *awards: tuple[str, int]) -> None:
    made = [Award(number, name, person, AT) for number, (name, person) in enumerate(awards, 1)]
    lab.run_in_server(lambda world: note(world).awards.extend(made))


async def test_every_emoji_comes_with_whose_it_is(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    assert list(await forge.reactions(7, NOTE)) == []
    awarded(lab, ("thumbsup", 13), ("eyes", 15))
    assert list(await forge.reactions(7, NOTE)) == [EmojiReaction("thumbsup", 13), EmojiReaction("eyes", 15)]


async def test_all_pages_are_read(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    awarded(lab, *((f"emoji_{number}", 13) for number in range(2 * FORGE_PER_PAGE + 1)))
    assert len(await forge.reactions(7, NOTE)) == 2 * FORGE_PER_PAGE + 1
    assert asked(lab, "GET", f"/notes/{NOTE}/award_emoji") == 3


async def test_strangers_who_put_any_number_there_do_not_keep_us_busy(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    awarded(lab, *((f"emoji_{number}", 15) for number in range(REACTIONS_READ + 3 * FORGE_PER_PAGE)))
    assert len(await forge.reactions(7, NOTE)) == REACTIONS_READ
    assert asked(lab, "GET", f"/notes/{NOTE}/award_emoji") == REACTIONS_READ // FORGE_PER_PAGE


async def test_any_name_is_told_as_it_is_and_acts_on_nothing(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    rows = [{"name": name, "user": {"id": 13}} for name in NAMES]
    lab.world.faults.plan(PATH, FaultResponse(200, rows))
    assert [each.name for each in await forge.reactions(7, NOTE)] == NAMES


@pytest.mark.parametrize("row", [None, 7, "x", {}, {"name": None, "user": None}, {"name": [], "user": {"id": "x"}}])
async def test_what_is_no_emoji_of_anybody_is_left_out(lab: GitLabLab, forge: GitLabProjectWriter, row: object) -> None:
    lab.world.faults.plan(PATH, FaultResponse(200, [row, {"name": "thumbsup", "user": {"id": 13}}]))
    assert list(await forge.reactions(7, NOTE)) == [EmojiReaction("thumbsup", 13)]


async def test_something_else_than_a_list_is_told(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.world.faults.plan(PATH, FaultResponse(200, {"message": "hello"}))
    with pytest.raises(GitLabRequestRefused):
        await forge.reactions(7, NOTE)


@pytest.mark.parametrize(("iid", "number"), [(7, 4711), (8, NOTE)])
async def test_a_note_that_is_gone_is_told_as_that(forge: GitLabProjectWriter, iid: int, number: int) -> None:
    with pytest.raises(GitLabNotFound):
        await forge.reactions(iid, number)


async def test_a_note_that_was_deleted_has_no_emoji_any_more(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    awarded(lab, ("thumbsup", 13))

    def delete(world: GitLabWorld) -> None:
        for thread in world.merge_request.discussions:
            thread.notes = [each for each in thread.notes if each.id != NOTE]

    lab.run_in_server(delete)
    with pytest.raises(GitLabNotFound):
        await forge.reactions(7, NOTE)


async def test_one_failure_is_tried_again_and_many_are_told(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    awarded(lab, ("thumbsup", 13))
    lab.world.faults.plan(PATH, server_error_fault(502))
    assert len(await forge.reactions(7, NOTE)) == 1
    lab.world.faults.plan(PATH, server_error_fault(500), times=FORGE_ATTEMPTS)
    with pytest.raises(GitLabUnavailable):
        await forge.reactions(7, NOTE)


async def test_a_gitlab_that_limits_us_is_told_as_busy(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.world.faults.plan(PATH, FaultResponse(429, {"message": "slow down"}), times=FORGE_ATTEMPTS)
    with pytest.raises(GitLabRateLimited):
        await forge.reactions(7, NOTE)


async def test_a_token_that_gitlab_does_not_take_is_the_operators_business(lab: GitLabLab) -> None:
    async with forging(lab.url, token="wrong") as bench:
        with pytest.raises(CredentialRefused):
            await bench.forge.reactions(7, NOTE)
