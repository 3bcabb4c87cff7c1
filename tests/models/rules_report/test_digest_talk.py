"""What `digest` says when nobody asks it why something failed, or asks again."""

import json

from hummingbird.agent.prompts import BASE_RULES, CONTINUATION
from hummingbird.core.messages import AssistantMessage, Message, Notice, NoticeKind, ToolCall, ToolMessage, UserMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.models.rules_report.report import GREETING, NO_REVIEW, report_details
from tests.models.rules_report.forge import Forge, listed
from tests.models.rules_report.play import digest, play
from tests.models.rules_report.samples import COMPILE, NETWORK, log

CHAT = "You are a helpful companion."


async def test_small_talk_gets_two_sentences_and_no_tool_call() -> None:
    forge = Forge([], {})
    played = await play("hello, how are you?", forge.tools(), system=CHAT)
    assert played.text == GREETING
    assert GREETING.count(". ") + 1 == 2
    assert forge.calls == []


async def test_a_pasted_log_is_explained_without_any_tool() -> None:
    played = await play("What is this?\n" + log(COMPILE, "engine"), [], system=CHAT)
    assert played.text.split("\n")[2].startswith("**Verdict: code**")
    assert "5: src/engine.c:42:5: error: 'throttle' undeclared" in played.text


async def test_the_address_of_a_job_is_enough_to_look_at_it() -> None:
    forge = Forge([], {4711: log(NETWORK, "engine")})
    said = "why did https://gitlab.example/acme/rocket/-/jobs/4711 fail?"
    played = await play(said, forge.tools(), system=CHAT)
    assert forge.calls == [("gitlab_get_job_log", {"project": "acme/rocket", "job_id": 4711})]
    assert played.text.split("\n")[2].startswith("**Verdict: infrastructure**")


async def test_a_reply_is_answered_from_what_there_is_and_nothing_is_run_again() -> None:
    """S3."""
    forge = Forge([listed(901, "build")], {901: log(COMPILE, "engine")})
    played = await play(forge.order, forge.tools(), "And what is throttle?")
    assert forge.shape == ["change", "diff", "jobs", "log"]
    assert "cannot answer in my own words" in played.text
    assert "4: src/engine.c:42:5: error: 'throttle' undeclared" in played.text

    asked_again = await play(forge.order, forge.tools(), "Hm?", system=CHAT)
    assert "**Verdict: code**" in asked_again.text


async def test_another_order_in_the_same_session_is_looked_into_anew() -> None:
    forge = Forge([listed(901, "build")], {901: log(COMPILE, "engine"), 902: log(NETWORK, "engine")})
    again = "and https://gitlab.example/acme/rocket/-/jobs/902 ?"
    played = await play(forge.order, forge.tools(), again)
    assert forge.calls[-1] == ("gitlab_get_job_log", {"project": "acme/rocket", "job_id": 902})
    assert "Curl error (6)" in played.text
    assert "throttle" not in played.text
    assert played.text.split("\n")[2].startswith("**Verdict: infrastructure**")


async def test_what_was_read_for_another_merge_request_is_not_told_again() -> None:
    arguments = '{"project": "acme/rocket", "pipeline_id": 500}'
    messages: list[Message] = [
        UserMessage('{"project": "acme/rocket", "iid": 7, "pipeline_id": 500}'),
        AssistantMessage("", calls=(ToolCall("c1", "gitlab_get_pipeline_jobs", arguments),)),
        ToolMessage("c1", "gitlab_get_pipeline_jobs", json.dumps([listed(901, "build")])),
        AssistantMessage("It failed."),
    ]
    jobs = ToolDefinition("gitlab_get_pipeline_jobs", "", {"type": "object", "properties": {"pipeline_id": {}}})

    async def report_on(order: str) -> str:
        request = ModelRequest("s", (jobs,), [*messages, UserMessage(order)], "s", "c", disable_tools=True)
        return (await digest().generate(request)).message.text

    assert "`build`" not in await report_on('{"project": "acme/rocket", "iid": 8, "pipeline_id": 600}')
    assert "`build`" in await report_on('{"project": "acme/rocket", "iid": 7, "pipeline_id": 500}')


async def test_a_review_needs_a_model_and_nothing_is_made_up() -> None:
    forge = Forge([], {})
    workflow = f"{BASE_RULES}\n\nReview the merge request as a careful reviewer would. Report what you find."
    named = '{"project": "acme/rocket", "iid": 7, "sha": "f00", "workflow": "code-review"}'
    for said, system in ((forge.order, workflow), ("please review this merge request", CHAT), (named, CHAT)):
        outcome = (await play(said, forge.tools(), system=system)).outcome
        assert (outcome.answered, outcome.sentence) == (False, NO_REVIEW)
    assert forge.calls == []


async def test_the_workflow_for_failures_is_not_taken_for_a_review() -> None:
    forge = Forge([listed(901, "build")], {901: log(COMPILE, "engine")})
    workflow = f"{BASE_RULES}\n\nA pipeline failed. Group failures by root cause. Reviewers read your report."
    assert "**Verdict: code**" in (await play(forge.order, forge.tools(), system=workflow)).text


def test_what_stands_above_a_report_in_a_note_is_not_told_again_below_it() -> None:
    report = (
        "## Failure report\n\n**Verdict: test** (sure).\n\n1 failure.\n\n### 1. `build`: test\n\nA test failed.\n"
        "Caused by this merge request: likely. It names a file.\n\n### What could not be read\n\n- x: test"
    )
    assert report_details(report) == "### 1. `build`\n\nA test failed.\n\n### What could not be read\n\n- x: test"


async def test_without_tools_it_reports_from_what_is_there() -> None:
    played = await play(Forge([], {}).order, [])
    assert "**Verdict: unknown.**" in played.text
    assert "- nothing was asked for: no tool was offered" in played.text


async def test_the_last_turn_is_a_report_whatever_is_still_open() -> None:
    tool = ToolDefinition("job_log", "The log of the job.", {"type": "object", "properties": {}})
    said: list[Message] = [UserMessage('{"project": "acme/rocket", "job": "build"}')]
    model = digest()
    open_end = await model.generate(ModelRequest("s", (tool,), said, "s", "c"))
    assert [call.name for call in open_end.message.calls] == ["job_log"]
    for last in (
        ModelRequest("s", (tool,), said, "s", "c", disable_tools=True),
        ModelRequest("s", (tool,), [*said, Notice(NoticeKind.FINAL, "This is your last turn.")], "s", "c"),
    ):
        reply = await model.generate(last)
        assert reply.message.calls == ()
        assert reply.message.text.startswith("## Failure report")
    spoken = AssistantMessage("so far")
    over = [*said, Notice(NoticeKind.FINAL, "last"), spoken, Notice(NoticeKind.RENEWED, "new")]
    assert (await model.generate(ModelRequest("s", (tool,), over, "s", "c"))).message.calls


async def test_a_continuation_notice_is_no_word_of_a_person() -> None:
    """S3."""
    said: list[Message] = [
        UserMessage("hello"),
        AssistantMessage(GREETING),
        UserMessage("ok"),
        Notice(NoticeKind.CONTINUATION, CONTINUATION),
    ]
    assert (await digest().generate(ModelRequest("s", (), said, "s", "c"))).message.text == GREETING
