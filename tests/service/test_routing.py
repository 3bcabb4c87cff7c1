"""R1–R7: what is done about pipelines and merge requests, and about every captured webhook."""

import json
from pathlib import Path
from typing import Any

import pytest

from hummingbird.domain.incoming import Change, EmojiChanged, Ignored, Incoming, Person, ProjectRef
from hummingbird.domain.orders import Cause, Overrides
from hummingbird.service.decisions import Automatic, Command, Continue, Decision, Ignore, Recount
from hummingbird.service.intake import read
from hummingbird.service.routing import left_alone, route
from tests.service.rules import ADA, BOT, BOTS, applied, change, configured, merge_request, note, pipeline

WEBHOOKS = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks"
BROKEN = Automatic(
    reason="the pipeline failed",
    cause=Cause.PIPELINE,
    start=("analyze-failures",),
    resolve_stale=("analyze-failures", "code-review"),
)
WORKING = Automatic(
    reason="the pipeline succeeded", cause=Cause.PIPELINE, resolve_all=("analyze-failures", "code-style")
)
NOT_FOR_US = Ignore("a comment that is not for us")
NOT_HERE = Ignore("the note is not on a merge request")


def reviewed(action: str, *stale: str) -> Automatic:
    why = f"the action is '{action}'"
    return Automatic(reason=why, cause=Cause.MERGE_REQUEST, start=("code-review",), resolve_stale=stale)


def continued(message: str) -> Continue:
    return Continue(reason="a reply", message=message, overrides=Overrides())


EXPECTED: dict[str, Decision] = {
    "derived_mr_update_draft_to_ready": reviewed("update"),
    "derived_mr_update_threads_resolved": reviewed("update"),
    "derived_note_mr_discussionnote_reply": continued("Can you look at the clair-scan timeout more closely?"),
    "derived_note_mr_internal_reply_17x": continued("reply inside an internal thread"),
    "derived_note_mr_internal_reply_18x": continued("reply inside an internal thread"),
    "derived_note_mr_slash_command": Command(
        reason="a command for code-review", workflow="code-review", overrides=Overrides(max_iterations=25)
    ),
    "derived_note_mr_update": Ignore("an old note was edited"),
    "derived_pipeline_failed_external_only": BROKEN,
    "derived_pipeline_failed_mr_no_builds": BROKEN,
    "mr_merge": Ignore("the action is 'merge'"),
    "mr_no_action": Ignore("the event names no action"),
    "mr_open": reviewed("open"),
    "mr_reopen": reviewed("reopen", "analyze-failures", "code-review"),
    "mr_update_draft_change": Ignore("the merge request is a draft"),
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


def test_a_decision_is_expected_for_every_captured_event_r1_r2_r3() -> None:
    captured = {path.stem for path in WEBHOOKS.glob("*.json") if "object_kind" in json.loads(path.read_text())}
    assert captured == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_captured_event_is_decided_about_r1_r2_r3(name: str) -> None:
    assert route(read((WEBHOOKS / f"{name}.json").read_bytes()), configured(), BOTS) == EXPECTED[name]


@pytest.mark.parametrize("event", [pipeline(), merge_request(), note("/hummingbird help")])
def test_a_project_that_no_workflow_is_for_is_ignored_r1(event: Incoming) -> None:
    configuration = configured(projects=("acme/other",))
    assert route(event, configuration, BOTS) == Ignore("no workflow is for this project")


def test_what_intake_ignores_stays_ignored_with_its_reason_r1() -> None:
    assert route(Ignored("a push"), configured(), BOTS) == Ignore("a push")


@pytest.mark.parametrize("status", ["created", "running", "canceled", "skipped", "manual", ""])
def test_a_pipeline_that_neither_failed_nor_succeeded_is_ignored_by_its_status_r1(status: str) -> None:
    assert route(pipeline(status), configured(), BOTS) == Ignore(f"the pipeline's status is '{status}'")


@pytest.mark.parametrize("status", ["running", "success", "failed"])
def test_a_replayed_pipeline_begins_whatever_its_status_is_r7(status: str) -> None:
    decision = route(pipeline(status), configured(), BOTS, forced=True)
    assert isinstance(decision, Automatic)
    assert (decision.start, decision.resolve_all) == (("analyze-failures",), ())
    assert decision.reason == "somebody replays the pipeline"


def test_success_is_ignored_where_nothing_is_resolved_by_it_r1() -> None:
    configuration = configured({"look": {"trigger": "pipeline"}})
    assert isinstance(route(pipeline("success"), configuration, BOTS), Ignore)


def test_the_trigger_that_counts_is_the_one_that_the_settings_make_of_it_r1() -> None:
    silent = configured({"look": {"trigger": "pipeline"}}, auto_trigger=False)
    assert isinstance(route(pipeline(), silent, BOTS), Ignore)
    every = route(pipeline(), configured({"look": {}}, auto_trigger=True), BOTS)
    assert isinstance(every, Automatic)
    assert every.start == ("look",)


def test_a_failed_pipeline_resolves_old_threads_although_nothing_begins_n4() -> None:
    decision = route(pipeline(), configured({"look": {"auto_resolve_on_push": True}}), BOTS)
    assert isinstance(decision, Automatic)
    assert (decision.start, decision.resolve_stale) == ((), ("look",))


@pytest.mark.parametrize("action", ["close", "merge", "approved", "unapproved", "approval", "OPEN"])
def test_other_actions_are_ignored_by_name_r2(action: str) -> None:
    assert route(merge_request(action, pushed=True), configured(), BOTS) == Ignore(f"the action is '{action}'")


@pytest.mark.parametrize("state", ["closed", "merged", "locked", ""])
def test_a_merge_request_that_is_not_open_is_ignored_r2(state: str) -> None:
    assert isinstance(route(merge_request(pushed=True, about=change(state=state)), configured(), BOTS), Ignore)


def test_a_push_to_a_draft_resolves_and_begins_nothing_r2_n4() -> None:
    decision = route(merge_request(pushed=True, about=change(draft=True)), configured(), BOTS)
    assert decision == Automatic(
        reason="the merge request is a draft",
        cause=Cause.MERGE_REQUEST,
        resolve_stale=("analyze-failures", "code-review"),
    )


def test_what_the_bot_does_to_a_merge_request_is_ignored_unless_it_pushed_i6() -> None:
    for bot in BOTS:
        actor = Person(bot, "project_1_bot")
        assert route(merge_request(actor=actor), configured(), BOTS) == Ignore("we did it ourselves")
    assert isinstance(route(merge_request(actor=Person(BOT, "bot"), pushed=True), configured(), BOTS), Automatic)


def test_somebody_unknown_is_not_taken_for_the_bot_i6() -> None:
    assert isinstance(route(merge_request(actor=Person(0, "")), configured(), frozenset()), Automatic)


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
def test_users_and_branches_are_ignored_by_their_whole_name_r4(username: str, branch: str, alone: str) -> None:
    rules: dict[str, Any] = {"ignore_users": ("renovate-bot",), "ignore_branches": ("renovate/.*", "release-[0-9]")}
    one = applied("look", configured({"look": rules}))
    assert left_alone(one, username=username, branch=branch) == alone


def test_a_name_that_is_not_known_is_left_to_who_knows_it_r4() -> None:
    one = applied("look", configured({"look": {"ignore_users": (".*",), "ignore_branches": (".*",)}}))
    assert left_alone(one, username="", branch="") == ""


def test_each_workflow_ignores_for_itself_and_says_so_r4() -> None:
    both: dict[str, dict[str, Any]] = {
        "one": {"trigger": "pipeline", "ignore_users": ("ada",)},
        "two": {"trigger": "pipeline"},
    }
    decision = route(pipeline(actor=ADA), configured(both), BOTS)
    assert isinstance(decision, Automatic)
    assert decision.start == ("two",)
    assert decision.reason == "the pipeline failed; one ignores the user 'ada'"


def test_an_ignored_branch_begins_nothing_but_its_old_threads_are_resolved_r4_n4() -> None:
    rules: dict[str, Any] = {"trigger": "merge_request", "ignore_branches": ("wip/.*",), "auto_resolve_on_push": True}
    event = merge_request(pushed=True, about=change(branch="wip/x"))
    decision = route(event, configured({"look": rules}), BOTS)
    assert isinstance(decision, Automatic)
    assert (decision.start, decision.resolve_stale) == ((), ("look",))


def test_the_ref_of_a_pipeline_without_a_merge_request_is_no_source_branch_r4() -> None:
    rules: dict[str, dict[str, Any]] = {"look": {"trigger": "pipeline", "ignore_branches": ("main",)}}
    assert isinstance(route(pipeline(ref="main", iid=7), configured(rules), BOTS), Ignore)
    assert isinstance(route(pipeline(ref="main", iid=0), configured(rules), BOTS), Automatic)


def test_commands_are_not_ignored_by_user_or_branch_r4() -> None:
    rules: dict[str, dict[str, Any]] = {
        "look": {"trigger": "pipeline", "ignore_users": ("ada",), "ignore_branches": (".*",)}
    }
    assert isinstance(route(note("/hummingbird look"), configured(rules), BOTS), Command)


def test_reasons_are_one_printable_line_r1() -> None:
    odd = Change(7, "", "x", "main", False, "a\n\x1b[31m" + "b" * 500, 0)
    for event in (pipeline("a\n\x1b[31m" + "b" * 500), merge_request(about=odd), merge_request("\u202e\n" * 90)):
        decision = route(event, configured(), BOTS)
        assert isinstance(decision, Ignore)
        assert decision.reason.isprintable()
        assert len(decision.reason) < 500


def test_an_emoji_of_somebody_else_is_worth_a_look_and_ours_is_not() -> None:
    """I6: our own emoji tell of themselves too."""
    made = {who: EmojiChanged(ProjectRef(101, "acme/widgets"), 5, Person(who, "x")) for who in (11, BOT)}
    assert route(made[11], configured(), BOTS) == Recount(reason="somebody's emoji on a note")
    assert route(made[BOT], configured(), BOTS) == Ignore("the emoji is our own")
    assert route(made[11], configured(projects=("other/one",)), BOTS) == Ignore("no workflow is for this project")
