"""What is done about pipelines and merge requests, and about every captured webhook."""

import json
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.orders import OrderCause, RunOverrides
from hummingbird.gitlab.webhook_events import (
    EmojiChanged,
    GitLabEvent,
    GitLabUser,
    IgnoredEvent,
    MergeRequestState,
    ProjectRef,
)
from hummingbird.service.event_parser import parse_event
from hummingbird.service.triggers import (
    AutomaticDecision,
    CommandDecision,
    ContinueDecision,
    IgnoreDecision,
    RecountDecision,
    TriggerDecision,
    decide_trigger,
    ignore_reason,
)
from tests.service.rules import ADA, BOT, BOTS, applied, change, configured, merge_request, note, pipeline

WEBHOOKS = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks"
BROKEN = AutomaticDecision(
    reason="the pipeline failed",
    cause=OrderCause.PIPELINE,
    start=("analyze-failures",),
    resolve_stale=("analyze-failures", "code-review"),
)
WORKING = AutomaticDecision(
    reason="the pipeline succeeded", cause=OrderCause.PIPELINE, resolve_all=("analyze-failures", "code-style")
)
NOT_FOR_US = IgnoreDecision("a comment that is not for us")
NOT_HERE = IgnoreDecision("the note is not on a merge request")


def reviewed(action: str, *stale: str) -> AutomaticDecision:
    why = f"the action is '{action}'"
    return AutomaticDecision(reason=why, cause=OrderCause.MERGE_REQUEST, start=("code-review",), resolve_stale=stale)


def continued(message: str) -> ContinueDecision:
    return ContinueDecision(reason="a reply", message=message, overrides=RunOverrides())


EXPECTED: dict[str, TriggerDecision] = {
    "derived_mr_update_draft_to_ready": reviewed("update"),
    "derived_mr_update_threads_resolved": reviewed("update"),
    "derived_note_mr_discussionnote_reply": continued("Can you look at the clair-scan timeout more closely?"),
    "derived_note_mr_internal_reply_17x": continued("reply inside an internal thread"),
    "derived_note_mr_internal_reply_18x": continued("reply inside an internal thread"),
    "derived_note_mr_slash_command": CommandDecision(
        reason="a command for code-review", workflow="code-review", overrides=RunOverrides(max_iterations=25)
    ),
    "derived_note_mr_update": IgnoreDecision("the note was edited, and only new notes start anything"),
    "derived_pipeline_failed_external_only": BROKEN,
    "derived_pipeline_failed_mr_no_builds": BROKEN,
    "mr_merge": IgnoreDecision("the action is 'merge'"),
    "mr_no_action": IgnoreDecision("the event names no action"),
    "mr_open": reviewed("open"),
    "mr_reopen": reviewed("reopen", "analyze-failures", "code-review"),
    "mr_update_draft_change": IgnoreDecision("the merge request is a draft"),
    "mr_update_labels": reviewed("update"),
    "mr_update_push_oldrev": reviewed("update", "analyze-failures", "code-review"),
    "mr_update_title_description": reviewed("update"),
    "note_confidential_issue": NOT_HERE,
    "note_issue": NOT_HERE,
    "note_mr_create_doc": NOT_FOR_US,
    "note_mr_diffnote": continued("check spelling"),
    "note_mr_individual": NOT_FOR_US,
    "pipeline_failed_merge_request_event": BROKEN,
    "pipeline_push_success_7builds": WORKING,
    "pipeline_success_5builds_doc": WORKING,
}


def test_a_decision_is_expected_for_every_captured_event() -> None:
    captured = {path.stem for path in WEBHOOKS.glob("*.json") if "object_kind" in json.loads(path.read_text())}
    assert captured == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_captured_event_is_decided_about(name: str) -> None:
    assert decide_trigger(parse_event((WEBHOOKS / f"{name}.json").read_bytes()), configured(), BOTS) == EXPECTED[name]


@pytest.mark.parametrize("event", [pipeline(), merge_request(), note("/hummingbird help")])
def test_a_project_that_no_workflow_is_for_is_ignored(event: GitLabEvent) -> None:
    configuration = configured(projects=("acme/other",))
    assert decide_trigger(event, configuration, BOTS) == IgnoreDecision("no workflow is for this project")


def test_what_intake_ignores_stays_ignored_with_its_reason() -> None:
    assert decide_trigger(IgnoredEvent("a push"), configured(), BOTS) == IgnoreDecision("a push")


@pytest.mark.parametrize("status", ["created", "running", "canceled", "skipped", "manual", ""])
def test_a_pipeline_that_neither_failed_nor_succeeded_is_ignored_by_its_status(status: str) -> None:
    assert decide_trigger(pipeline(status), configured(), BOTS) == IgnoreDecision(
        f"the pipeline's status is '{status}'"
    )


@pytest.mark.parametrize("status", ["running", "success", "failed"])
def test_a_replayed_pipeline_begins_whatever_its_status_is(status: str) -> None:
    decision = decide_trigger(pipeline(status), configured(), BOTS, forced=True)
    assert isinstance(decision, AutomaticDecision)
    assert (decision.start, decision.resolve_all) == (("analyze-failures",), ())
    assert decision.reason == "somebody replays the pipeline"


def test_success_is_ignored_where_nothing_is_resolved_by_it() -> None:
    configuration = configured({"look": {"trigger": "pipeline"}})
    assert isinstance(decide_trigger(pipeline("success"), configuration, BOTS), IgnoreDecision)


def test_the_trigger_that_counts_is_the_one_that_the_settings_make_of_it() -> None:
    silent = configured({"look": {"trigger": "pipeline"}}, auto_trigger=False)
    assert isinstance(decide_trigger(pipeline(), silent, BOTS), IgnoreDecision)
    every = decide_trigger(pipeline(), configured({"look": {}}, auto_trigger=True), BOTS)
    assert isinstance(every, AutomaticDecision)
    assert every.start == ("look",)


def test_a_failed_pipeline_resolves_old_threads_although_nothing_begins() -> None:
    decision = decide_trigger(pipeline(), configured({"look": {"auto_resolve_on_push": True}}), BOTS)
    assert isinstance(decision, AutomaticDecision)
    assert (decision.start, decision.resolve_stale) == ((), ("look",))


@pytest.mark.parametrize("action", ["close", "merge", "approved", "unapproved", "approval", "OPEN"])
def test_other_actions_are_ignored_by_name(action: str) -> None:
    assert decide_trigger(merge_request(action, pushed=True), configured(), BOTS) == IgnoreDecision(
        f"the action is '{action}'"
    )


@pytest.mark.parametrize("state", ["closed", "merged", "locked", ""])
def test_a_merge_request_that_is_not_open_is_ignored(state: str) -> None:
    assert isinstance(
        decide_trigger(merge_request(pushed=True, about=change(state=state)), configured(), BOTS), IgnoreDecision
    )


def test_a_push_to_a_draft_resolves_and_begins_nothing() -> None:
    decision = decide_trigger(merge_request(pushed=True, about=change(draft=True)), configured(), BOTS)
    assert decision == AutomaticDecision(
        reason="the merge request is a draft",
        cause=OrderCause.MERGE_REQUEST,
        resolve_stale=("analyze-failures", "code-review"),
    )


def test_what_the_bot_does_to_a_merge_request_is_ignored_unless_it_pushed() -> None:
    for bot in BOTS:
        actor = GitLabUser(bot, "project_1_bot")
        assert decide_trigger(merge_request(actor=actor), configured(), BOTS) == IgnoreDecision("we did it ourselves")
    assert isinstance(
        decide_trigger(merge_request(actor=GitLabUser(BOT, "bot"), pushed=True), configured(), BOTS), AutomaticDecision
    )


def test_somebody_unknown_is_not_taken_for_the_bot() -> None:
    assert isinstance(
        decide_trigger(merge_request(actor=GitLabUser(0, "")), configured(), frozenset()), AutomaticDecision
    )


@pytest.mark.parametrize(
    ("username", "branch", "alone"),
    [
        ("renovate-bot", "topic", "look ignores the user 'renovate-bot'"),
        ("renovate-bot-2", "topic", ""),
        ("my-renovate-bot", "topic", ""),
        ("renovate-bot\n", "topic", ""),
        ("ada", "renovate/all", "look ignores the branch 'renovate/all'"),
        ("ada", "my/renovate/all", ""),
        ("ada", "release-1", "look ignores the branch 'release-1'"),
        ("ada", "release-12", ""),
        ("", "", ""),
    ],
)
def test_users_and_branches_are_ignored_by_their_whole_name(username: str, branch: str, alone: str) -> None:
    rules: dict[str, Any] = {"ignore_users": ("renovate-bot",), "ignore_branches": ("renovate/.*", "release-[0-9]")}
    one = applied("look", configured({"look": rules}))
    assert ignore_reason(one, username=username, branch=branch) == alone


def test_a_name_that_is_not_known_is_left_to_who_knows_it() -> None:
    one = applied("look", configured({"look": {"ignore_users": (".*",), "ignore_branches": (".*",)}}))
    assert ignore_reason(one, username="", branch="") == ""


def test_each_workflow_ignores_for_itself_and_says_so() -> None:
    both: dict[str, dict[str, Any]] = {
        "one": {"trigger": "pipeline", "ignore_users": ("ada",)},
        "two": {"trigger": "pipeline"},
    }
    decision = decide_trigger(pipeline(actor=ADA), configured(both), BOTS)
    assert isinstance(decision, AutomaticDecision)
    assert decision.start == ("two",)
    assert decision.reason == "the pipeline failed; one ignores the user 'ada'"


def test_an_ignored_branch_begins_nothing_but_its_old_threads_are_resolved() -> None:
    rules: dict[str, Any] = {"trigger": "merge_request", "ignore_branches": ("wip/.*",), "auto_resolve_on_push": True}
    event = merge_request(pushed=True, about=change(branch="wip/x"))
    decision = decide_trigger(event, configured({"look": rules}), BOTS)
    assert isinstance(decision, AutomaticDecision)
    assert (decision.start, decision.resolve_stale) == ((), ("look",))


def test_the_ref_of_a_pipeline_without_a_merge_request_is_no_source_branch() -> None:
    rules: dict[str, dict[str, Any]] = {"look": {"trigger": "pipeline", "ignore_branches": ("main",)}}
    assert isinstance(decide_trigger(pipeline(ref="main", iid=7), configured(rules), BOTS), IgnoreDecision)
    assert isinstance(decide_trigger(pipeline(ref="main", iid=0), configured(rules), BOTS), AutomaticDecision)


def test_commands_are_not_ignored_by_user_or_branch() -> None:
    rules: dict[str, dict[str, Any]] = {
        "look": {"trigger": "pipeline", "ignore_users": ("ada",), "ignore_branches": (".*",)}
    }
    assert isinstance(decide_trigger(note("/hummingbird look"), configured(rules), BOTS), CommandDecision)


def test_reasons_are_one_printable_line() -> None:
    odd = MergeRequestState(7, "", "x", "main", False, "a\n\x1b[31m" + "b" * 500, 0)
    for event in (pipeline("a\n\x1b[31m" + "b" * 500), merge_request(about=odd), merge_request("\u202e\n" * 90)):
        decision = decide_trigger(event, configured(), BOTS)
        assert isinstance(decision, IgnoreDecision)
        assert decision.reason.isprintable()
        assert len(decision.reason) < 500


def test_an_emoji_of_somebody_else_is_worth_a_look_and_ours_is_not() -> None:
    """Our own emoji tell of themselves too."""
    made = {who: EmojiChanged(ProjectRef(101, "acme/widgets"), 5, GitLabUser(who, "x")) for who in (11, BOT)}
    assert decide_trigger(made[11], configured(), BOTS) == RecountDecision(reason="somebody's emoji on a note")
    assert decide_trigger(made[BOT], configured(), BOTS) == IgnoreDecision("the emoji is our own")
    assert decide_trigger(made[11], configured(projects=("other/one",)), BOTS) == IgnoreDecision(
        "no workflow is for this project"
    )
