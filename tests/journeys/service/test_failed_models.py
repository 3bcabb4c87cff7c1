"""What a merge request is told when the model's provider fails: a failed run is no review."""

from pathlib import Path

import pytest

from hummingbird.core.journal import EndReason, RunEnded, RunStarted
from hummingbird.gitlab.write.protocol import NoteKind
from tests.journeys.service.stage import MODEL, Stage, staged
from tests.standins.vendors.script import Fault, Step, Turn

PUBLIC = {"internal_notes": False}
REVIEW = {"code-review": {"trigger": "merge_request", "inline_findings": True}}
FORBIDDEN = Fault("status", status=403, type="permission_error", message="Your key may not use this model.")


async def test_a_refused_review_is_marked_failed_and_the_next_event_tries_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turns: list[Step] = [FORBIDDEN, Turn(text="One defect.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        await stage.begin_case()
        _, failed = await stage.notes(2)
        await stage.begin_case()
        *_, result = await stage.notes(4)
        entries = stage.entries(failed.session)
    assert (failed.part, result.part) == (NoteKind.FAILED, NoteKind.RESULT)
    assert "This run failed: Anthropic refused the credential (403 permission_error)" in failed.body
    assert "Your key may not use this model." in failed.body
    assert "Nothing was found so far." in failed.body
    assert "One defect." in result.body
    [said] = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert "Anthropic refused the credential (403 permission_error)" in said
    ends = [one.reason for one in entries if isinstance(one, RunEnded)]
    assert ends == [EndReason.MODEL_ERROR, EndReason.COMPLETED]
    assert [one.resumed for one in entries if isinstance(one, RunStarted)] == [False, False], "nobody has replied"


async def test_a_failure_explained_by_rules_says_which_provider_failed_and_a_reply_asks_it_again(
    tmp_path: Path,
) -> None:
    turns: list[Step] = [FORBIDDEN, Turn(text="Because the list ends too early.")]
    async with staged("failing-test", tmp_path, settings=PUBLIC, turns=turns) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        await stage.write(_author(stage), "Why is that?", thread=result.thread)
        *_, answer = await stage.notes(3)
    said = "No model could be asked, so rules alone wrote this report: Anthropic refused the credential (403 "
    assert said in result.body
    assert "Your key may not use this model." in result.body
    assert result.body.index(said) < result.body.index("Verdict: ")
    assert result.part is NoteKind.RESULT
    assert "Because the list ends too early." in answer.body
    assert f"`{MODEL}`" in answer.body


async def test_without_any_key_a_review_fails_and_says_what_to_set(tmp_path: Path) -> None:
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW) as stage:
        await stage.begin_case()
        _, failed = await stage.notes(2)
    assert failed.part is NoteKind.FAILED
    assert "This workflow needs a language model: set one of ANTHROPIC_API_KEY" in failed.body


def _author(stage: Stage) -> str:
    return stage.ask(lambda world: world.user(world.merge_request.author_id).username)
