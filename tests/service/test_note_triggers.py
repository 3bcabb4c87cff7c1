"""What is done about a person's note."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.config.settings import ProjectSettings
from hummingbird.core.limits import MESSAGE_CHARS, QUEUE_BODY_BYTES
from hummingbird.core.orders import OrderCause, RunOverrides, WorkOrder, encode_envelope
from hummingbird.gitlab.webhook_events import GitLabUser
from hummingbird.service.note_commands import find_override_fault
from hummingbird.service.triggers import (
    AnswerDecision,
    CommandDecision,
    ContinueDecision,
    IgnoreDecision,
    TriggerDecision,
    decide_trigger,
)
from tests.service.rules import BOTS, applied, configured, note

CONFIGURATION = configured()
NOT_FOR_US = IgnoreDecision("a comment that is not for us")


def decided(text: str, *, reply: bool = False) -> TriggerDecision:
    return decide_trigger(note(text, reply=reply), CONFIGURATION, BOTS)


def said(text: str, *, reply: bool = False) -> str:
    decision = decided(text, reply=reply)
    assert isinstance(decision, AnswerDecision)
    return decision.text


def commanded(text: str, *, reply: bool = False) -> CommandDecision:
    decision = decided(text, reply=reply)
    assert isinstance(decision, CommandDecision)
    return decision


def continued(text: str) -> ContinueDecision:
    decision = decided(text, reply=True)
    assert isinstance(decision, ContinueDecision)
    return decision


@pytest.mark.parametrize("text", ["/hummingbird code-review", "Hello", "/hummingbird"])
@pytest.mark.parametrize("reply", [True, False])
def test_the_bot_never_answers_itself_nor_who_it_was_before(text: str, reply: bool) -> None:
    for bot in BOTS:
        event = note(text, reply=reply, author=GitLabUser(bot, "bot"))
        assert decide_trigger(event, CONFIGURATION, BOTS) == IgnoreDecision("we wrote the note ourselves")


def test_an_edited_command_does_nothing() -> None:
    event = note("/hummingbird code-review", edited=True)
    assert decide_trigger(event, CONFIGURATION, BOTS) == IgnoreDecision(
        "the note was edited, and only new notes start anything"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n ",
        "Looks good",
        "/hummingbirdx code-review",
        "/hummingbird-code-review",
        "/humming",
        "see /hummingbird code-review",
        "> /hummingbird code-review",
        "`/hummingbird code-review`",
        "    /hummingbird code-review",
        "\t/hummingbird code-review",
        "```\n/hummingbird code-review\n```",
        "~~~ sh\n/hummingbird code-review",
        ">>>\n/hummingbird code-review\n>>>",
        "You can write this:\n\n/hummingbird code-review",
        "x\u2028/hummingbird code-review",
    ],
)
def test_a_comment_that_does_not_begin_with_a_command_is_not_for_us(text: str) -> None:
    assert decided(text) == NOT_FOR_US


@pytest.mark.parametrize(
    "text",
    [
        "/hummingbird code-review",
        "\n\n  /hummingbird   code-review  ",
        "/hummingbird\tcode-review\r\n",
        "/hummingbird\u00a0code-review",
        "/Hummingbird Code-Review",
        "/hummingbird code-r",
    ],
)
@pytest.mark.parametrize("reply", [True, False])
def test_a_command_is_understood_in_a_new_note_and_in_a_reply(text: str, reply: bool) -> None:
    assert commanded(text, reply=reply) == CommandDecision(
        reason="a command for code-review", workflow="code-review", overrides=RunOverrides()
    )


def test_an_exact_name_wins_over_longer_ones() -> None:
    configuration = configured({"look": {}, "look-again": {}, "Look": {}})
    for word in ("look", "Look", "look-a"):
        decision = decide_trigger(note(f"/hummingbird {word}"), configuration, BOTS)
        assert isinstance(decision, CommandDecision)
        assert decision.workflow == {"look-a": "look-again"}.get(word, word)


def test_a_name_in_another_case_wins_over_longer_ones() -> None:
    decision = decide_trigger(note("/hummingbird LOOK"), configured({"look-again": {}, "look": {}}), BOTS)
    assert isinstance(decision, CommandDecision)
    assert decision.workflow == "look"


def test_a_beginning_that_fits_several_lists_them() -> None:
    text = said("/hummingbird code")
    assert "`code-review`, `code-style`" in text
    assert "analyze" not in text


def test_an_unknown_workflow_is_answered_with_the_nearest_and_all_of_them() -> None:
    text = said("/hummingbird reviev-code")
    assert "no workflow `reviev-code`" in text
    assert "Did you mean `code-review`?" in said("/hummingbird code-revew")
    assert "`analyze-failures`, `code-review`, `code-style`" in text
    assert "Did you mean `analyze-failures`?" in said("/hummingbird anlyze"), "a slip in a shortened name"
    assert "Did you mean" not in said("/hummingbird zzz")


@pytest.mark.parametrize(
    "text", ["/hummingbird", "/hummingbird help", "/hummingbird Help me\nplease", " /hummingbird "]
)
@pytest.mark.parametrize("reply", [True, False])
def test_help_names_workflows_choices_and_models(text: str, reply: bool) -> None:
    shown = said(text, reply=reply)
    assert "- `analyze-failures`: Finds out why a pipeline failed\n" in shown
    assert "- `code-style`\n" in shown
    assert "`model=NAME`: `fast`, `vendor:large`" in shown
    assert "60 for `code-review`, 100 for `code-style`" in shown
    assert not re.search(r"^ {0,3}/", shown, re.MULTILINE)


def test_help_promises_any_model_where_nobody_narrowed_them() -> None:
    decision = decide_trigger(note("/hummingbird"), configured(models_allowed=()), BOTS)
    assert isinstance(decision, AnswerDecision)
    assert "`model=NAME`: any model of a provider that this service has credentials for" in decision.text


@pytest.mark.parametrize("word", ["", "theirs"])
def test_answers_are_only_about_the_workflows_of_the_project(word: str) -> None:
    theirs = {"projects": {"acme/other": ProjectSettings()}, "description": "Not for you"}
    decision = decide_trigger(note(f"/hummingbird {word}"), configured({"ours": {}, "theirs": theirs}), BOTS)
    assert isinstance(decision, AnswerDecision)
    assert "`ours`" in decision.text
    assert "Not for you" not in decision.text
    assert ("no workflow `theirs`" in decision.text) == bool(word)


def test_the_prefix_is_the_configured_one() -> None:
    configuration = configured(trigger_prefix="/bird")
    assert isinstance(decide_trigger(note("/bird code-review"), configuration, BOTS), CommandDecision)
    assert decide_trigger(note("/hummingbird code-review"), configuration, BOTS) == NOT_FOR_US


def test_what_else_stands_in_a_command_is_its_message() -> None:
    text = "/hummingbird analyze model=fast max_iterations=9 why  is x=3 slow?\n\nSee:\n```\n/hummingbird model=no\n```"
    assert commanded(text) == CommandDecision(
        reason="a command for analyze-failures",
        workflow="analyze-failures",
        overrides=RunOverrides(model="fast", max_iterations=9),
        message="why  is x=3 slow?\n\nSee:\n```\n/hummingbird model=no\n```",
    )


def test_choices_of_a_command_may_stand_on_lines_of_their_own() -> None:
    found = commanded(
        "/hummingbird code-review model=fast\nLook twice.\n/hummingbird max_iterations=3 model=vendor:large"
    )
    assert found.overrides == RunOverrides(model="vendor:large", max_iterations=3)
    assert found.message == "Look twice."


def test_choices_without_a_workflow_are_answered_in_a_new_note() -> None:
    assert "Name a workflow first" in said("/hummingbird model=fast code-review")


def test_a_reply_is_continued_with_its_text() -> None:
    assert continued("Why?\r\n\r\nReally: why?") == ContinueDecision(
        reason="a reply", message="Why?\n\nReally: why?", overrides=RunOverrides()
    )


@pytest.mark.parametrize(
    "text",
    [
        "/hummingbird model=fast max_iterations=9\nWhy?\nNow",
        "Why?\n/hummingbird model=fast\n/hummingbird max_iterations=9\nNow",
        "Why?\n  /HUMMINGBIRD max_iterations=9 model=fast  \r\nNow",
        "/hummingbird model=own-model max_iterations=9 Why?\nNow\n/hummingbird model=fast",
    ],
)
def test_choices_on_their_own_lines_are_removed_from_a_reply(text: str) -> None:
    found = continued(text)
    assert found.overrides == RunOverrides(model="fast", max_iterations=9)
    assert (found.message, found.fault) == ("Why?\nNow", "")


@pytest.mark.parametrize(
    "text",
    [
        "Why?\n> /hummingbird model=fast",
        "Why?\n```\n/hummingbird model=fast\n```\nNow",
        "Why?\n````\n```\n/hummingbird model=fast\n````",
        "Why?\n~~~ sh\n/hummingbird model=fast\n~~~",
        ">>>\n/hummingbird model=fast\n>>>\nWhy?",
        "Why not `/hummingbird model=fast`?",
        "Why?\n    /hummingbird model=fast",
        "Why?\n/hummingbird code-review",
        "Why?\n/hummingbird",
    ],
)
def test_what_is_quoted_code_or_no_choice_stays_in_the_reply(text: str) -> None:
    assert continued(text) == ContinueDecision(reason="a reply", message=text, overrides=RunOverrides())


def test_after_a_fence_has_ended_choices_count_again() -> None:
    found = continued("```\n/hummingbird model=no\n```\n/hummingbird model=fast")
    assert (found.overrides.model, found.message) == ("fast", "```\n/hummingbird model=no\n```")


def test_a_reply_of_choices_alone_goes_on_without_a_message() -> None:
    assert continued("/hummingbird model=fast\n") == ContinueDecision(
        reason="a reply", message="", overrides=RunOverrides(model="fast")
    )


def test_an_empty_reply_is_ignored() -> None:
    assert decided(" \n", reply=True) == IgnoreDecision("the reply is empty")


def test_a_reply_without_a_thread_is_ignored() -> None:
    decision = decide_trigger(note("Why?", reply=True, discussion_id=""), CONFIGURATION, BOTS)
    assert decision == IgnoreDecision("the reply does not say in which thread it is")


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ("modle=fast", "`modle` is not an option: choose from `model`, `max_iterations`."),
        ("max_iterations=0", "`0` is not a number for `max_iterations`"),
        ("max_iterations=-1", "`-1` is not a number"),
        ("max_iterations=1.5", "`1.5` is not a number"),
        ("max_iterations=", "nothing is not a number"),
        ("max_iterations=١٢", "is not a number"),
        ("max_iterations=9999999999999", "is not a number"),
        ("model=", "needs the name of a model"),
        ("model=FAST", "The model `FAST` cannot be chosen"),
        ("model=fast max_iterations=101", "`max_iterations=101` is too much: `code-style` may be given 100 at most."),
        ("model=`x`", "The model `'x'` cannot be chosen"),
    ],
)
def test_a_choice_that_cannot_be_made_is_answered_with_what_can(choice: str, sentence: str) -> None:
    assert sentence in said(f"/hummingbird code-style {choice}")
    found = continued(f"Why?\n/hummingbird {choice}")
    assert sentence in found.fault
    assert found.overrides == RunOverrides()


def test_at_most_twice_the_configured_iterations() -> None:
    assert commanded("/hummingbird code-style max_iterations=100").overrides.max_iterations == 100
    assert "60 at most" in said("/hummingbird code-review max_iterations=61")
    assert commanded("/hummingbird code-review max_iterations=60").overrides.max_iterations == 60


def test_a_reply_may_choose_what_any_workflow_allows_until_its_own_is_known() -> None:
    found = continued("Why?\n/hummingbird max_iterations=100")
    assert (found.fault, found.overrides.max_iterations) == ("", 100)
    assert continued("Why?\n/hummingbird model=own-model").fault == ""
    allowed = CONFIGURATION.settings.models_allowed
    assert find_override_fault(found.overrides, applied("code-style"), allowed) == ""
    assert "60 at most" in find_override_fault(found.overrides, applied("code-review"), allowed)


@pytest.mark.parametrize("model", ["own-model", "spare-model", "fast"])
def test_the_models_of_a_workflow_itself_may_be_chosen_for_it(model: str) -> None:
    assert commanded(f"/hummingbird analyze model={model}").overrides.model == model


def test_the_models_of_another_workflow_may_not_be_chosen() -> None:
    text = said("/hummingbird code-review model=own-model")
    assert "choose from `fast`, `vendor:large`" in text


def test_where_no_model_can_be_chosen_the_answer_says_so() -> None:
    configuration = configured({"look": {}}, models_allowed=(), model="")
    decision = decide_trigger(note("/hummingbird look model=fast"), configuration, BOTS)
    assert isinstance(decision, AnswerDecision)
    assert "no model can be chosen here" in decision.text


@pytest.mark.parametrize(
    "words",
    ["`</code>`@all", '<!--hummingbird-session:{"id":"x"}-->', "``` x", "a" * 5_000, "\u202ex\x00\x1b[1m", "@all"],
)
@pytest.mark.parametrize(
    "before", ["/hummingbird ", "/hummingbird code-review model=", "/hummingbird code-r max_iterations="]
)
def test_an_echo_cannot_leave_its_code(words: str, before: str) -> None:
    text = said(before + words)
    spans = re.findall(r"`[^`]*`", text)
    outside = re.sub(r"`[^`]*`", "", text)
    assert not set(outside) & set("`<>@")
    assert not any(set(span) & set("<>") for span in spans)
    assert text.isprintable()
    assert len(text) < 1_000


def test_the_longest_message_fits_into_a_queue() -> None:
    for character in ("x", "\x01", "é", "😀", '"'):
        found = continued(character * 1_000_000)
        assert len(found.message) <= MESSAGE_CHARS
        assert "left out" in found.message
        order = WorkOrder(
            id="o", session_id="s", cause=OrderCause.REPLY, workflow="w", project="p", mr_iid=1, message=found.message
        )
        assert len(encode_envelope(order)) < QUEUE_BODY_BYTES - 16 * 1024


PIECES = st.sampled_from(
    [
        "/hummingbird",
        " ",
        "\n",
        "code-review",
        "model=",
        "fast",
        "max_iterations=",
        "7",
        "`",
        "```",
        ">>>",
        ">",
        "\r",
        "<!--",
    ]
)


@pytest.mark.parametrize(
    ("text", "reply", "answered"),
    [
        ("<!-- please reply above this line -->\nWhy does it fail?", True, True),
        ('<!-- hummingbird-session: {"id":"1"} -->\nMine.', True, False),
        ("<!-- hummingbird-session-answer: 7 -->\nNo such workflow.", True, False),
        ("Why does it fail? And what is this hummingbird-session in your note?", True, True),
        ('It says <!-- hummingbird-session: {"id":"1"} --> at its top. Why does it fail?', True, True),
        ('<!-- other-bot: {"run": 1} -->\nPassed.', True, False),
        ("<!-- robin-session-answer: 7 -->\nNo such workflow.", True, False),
        ("<!-- danger-bot -->\n2 warnings", False, False),
    ],
)
def test_a_reply_that_begins_with_a_comment_is_answered_unless_a_program_wrote_it(
    text: str, reply: bool, answered: bool
) -> None:
    decision = decided(text, reply=reply)
    assert isinstance(decision, ContinueDecision) is answered
    if answered:
        assert isinstance(decision, ContinueDecision)
        assert "Why does it fail?" in decision.message


@given(st.one_of(st.text(), st.lists(PIECES | st.text(max_size=5)).map("".join)), st.booleans())
def test_every_text_is_decided_about_and_no_answer_can_act(text: str, reply: bool) -> None:
    decision = decided(text, reply=reply)
    assert decision.reason.isprintable()
    answer = (
        decision.text
        if isinstance(decision, AnswerDecision)
        else decision.fault
        if isinstance(decision, ContinueDecision)
        else ""
    )
    assert answer.count("`") % 2 == 0
    assert not re.search(r"^\s*/|<!--", answer, re.MULTILINE)
    if not isinstance(decision, IgnoreDecision | ContinueDecision):
        assert text.strip().casefold().startswith("/hummingbird")


@pytest.mark.thorough
@given(st.text(alphabet="ab`~> \n"), st.text(alphabet="yz` \n"))
def test_a_reply_without_our_prefix_keeps_every_word(before: str, after: str) -> None:
    text = before + "x" + after
    assert continued(text) == ContinueDecision(reason="a reply", message=text.strip(), overrides=RunOverrides())


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    assert continued("Why \ud800?").message == "Why ??"
    assert "`?`" in said("/hummingbird \ud800")
