"""What notes say, and that no foreign word in a line of ours means anything."""

from decimal import Decimal

import pytest
from markdown_it import MarkdownIt

from hummingbird.config.loader import load_config
from hummingbird.config.settings import Settings
from hummingbird.core.journal import EndReason
from hummingbird.core.limits import (
    NOTE_CHARS,
    NOTE_LOOKS_S,
    NOTE_QUOTED_CHARS,
    NOTE_TRANSCRIPT_CHARS,
    NOTE_TROUBLE,
    NOTE_WRITES,
    TOOL_TIMEOUT_S,
)
from hummingbird.core.orders import OrderCause
from hummingbird.core.usage import Bill, TokenUsage
from hummingbird.service import note_text
from tests.service.publication.stage import SHA, applied_of, conducted, configured, ordered, outcome

LINKS = {
    "docs_url": "https://docs.example/hummingbird",
    "source_url": "https://src.example/hummingbird",
    "slack_url": "https://chat.example/c/1",
    "slack_label": "#ci-help",
}


def placeholder(cause: OrderCause = OrderCause.PIPELINE, **workflow: str) -> str:
    configuration = configured(LINKS, **workflow)
    order = ordered(cause, pipeline_id=9011)
    return note_text.placeholder_text(order, applied_of(configuration), configuration)


def test_a_placeholder_says_what_is_looked_at() -> None:
    begun = placeholder().split("\n\n")[0]
    assert begun == (
        "The workflow `analyze-failures` looks at commit `f6887281` and [pipeline 9011]"
        "(https://gitlab.example/labri-progress/cidiff/-/pipelines/9011). What it finds will be a reply here."
    )


def test_a_placeholder_links_what_the_configuration_names_and_nothing_else() -> None:
    links = placeholder(workflow_url="https://src.example/prompt.md").split("\n\n")[-1]
    assert links == (
        "[Documentation](https://docs.example/hummingbird) · [Source code](https://src.example/hummingbird) · "
        "[\\#ci-help](https://chat.example/c/1) · [Prompt](https://src.example/prompt.md)"
    )
    bare = configured()
    said = note_text.placeholder_text(ordered(), applied_of(bare), bare)
    assert "](" not in said
    assert said.endswith("says what else can be asked for.")


def test_a_placeholder_says_how_to_go_on_with_the_prefix_that_is_configured() -> None:
    configuration = configured({"trigger_prefix": "/bird"})
    said = note_text.placeholder_text(ordered(), applied_of(configuration), configuration)
    assert "reply in this thread" in said
    assert "`/bird help`" in said
    assert "/hummingbird" not in said


def test_a_placeholder_without_a_commit_is_about_the_merge_request() -> None:
    configuration = configured()
    said = note_text.placeholder_text(ordered(sha=""), applied_of(configuration), configuration)
    assert "looks at this merge request." in said


def test_a_placeholder_announces_silence_only_where_there_will_be_silence() -> None:
    assert "nothing follows" in placeholder(nothing_found="silence")
    assert "nothing follows" not in placeholder(nothing_found="line")
    assert "nothing follows" not in placeholder(OrderCause.COMMAND, nothing_found="silence")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (125.2, "2 min 5 s"),
        (3599.7, "1 h"),
        (3661, "1 h 1 min"),
        (7200, "2 h"),
    ],
)
def test_durations_are_told_as_people_say_them(seconds: float, said: str) -> None:
    assert note_text.format_duration(seconds) == said


def test_a_footer_ends_with_the_whole_bill() -> None:
    facts = note_text.build_footer(ordered(), conducted(), configured().settings).split("\n\n")[-1]
    assert facts == (
        "<sub>`vendor/model-1`, 4 iterations, 3 model calls, 4,000 tokens in (75% cached), 250 out, \\$0.0421, "
        "2 min 5 s, commit `f6887281`, session `session-1`</sub>"
    )


def test_a_footer_does_not_make_a_sum_of_what_nobody_knows() -> None:
    bill = Bill(3, 3, TokenUsage(fresh=10), Decimal("0.5"), 1)
    assert "cost unknown for 1 of 3 calls (\\$0.5000 known)" in note_text.build_footer(
        ordered(), conducted(bill=bill), configured().settings
    )


def test_only_first_results_say_how_to_go_on_and_ask_for_a_thumb() -> None:
    settings = configured().settings
    assert "👍 or 👎 on this note" in note_text.build_footer(ordered(), conducted(), settings)
    assert "👍" not in note_text.build_footer(ordered(OrderCause.REPLY), conducted(), settings)
    assert "reply in this thread" in note_text.build_footer(ordered(), conducted(), settings)
    assert "reply in this thread" in note_text.build_footer(ordered(OrderCause.COMMAND), conducted(), settings)
    assert "reply in this thread" not in note_text.build_footer(ordered(OrderCause.REPLY), conducted(), settings)


def test_trouble_is_named_once_and_bounded() -> None:
    many = [f"The journal could not be kept, try {number}." for number in range(20)]
    said = note_text.build_footer(ordered(), conducted(trouble=many[:1]), configured().settings, many)
    assert said.count("try 0.") == 1
    assert said.count("The journal could not be kept") == NOTE_TROUBLE
    assert "went" not in note_text.build_footer(ordered(), conducted(), configured().settings)


def test_a_transcript_is_folded_whole_if_it_is_short() -> None:
    (fold,) = note_text.transcript_folds("# Session\n\nhello", Settings())
    assert (fold.title, fold.text) == ("Transcript", "# Session\n\nhello")
    assert note_text.transcript_folds(" \n", Settings()) == ()


def test_where_there_is_a_dashboard_the_transcript_is_linked() -> None:
    settings = configured({"dashboard_url": "https://bird.example/"}).settings
    assert note_text.transcript_folds("# Session", settings) == ()
    footer = note_text.build_footer(ordered(), conducted(), settings)
    assert "[session `session-1`](https://bird.example/sessions/session-1)" in footer


def test_a_long_transcript_keeps_its_ends_and_says_what_is_missing() -> None:
    text = "BEGIN" + "x" * NOTE_TRANSCRIPT_CHARS + "END"
    (fold,) = note_text.transcript_folds(text, Settings())
    assert fold.text.startswith("BEGIN")
    assert fold.text.endswith("END")
    assert "[8 characters are left out here; the whole transcript is in the session.]" in fold.text
    assert len(fold.text) < NOTE_TRANSCRIPT_CHARS + 200


@pytest.mark.parametrize("answer", ["Nothing to report.", " nothing to report\n", "**Nothing to report.**", ""])
def test_the_agreed_line_as_the_whole_answer_is_nothing(answer: str) -> None:
    assert note_text.is_nothing_found(answer)


@pytest.mark.parametrize(
    "answer", ["Nothing to report. But the build is slow.", "Nothing", "- Nothing to report.\n- x"]
)
def test_any_other_answer_is_something(answer: str) -> None:
    assert not note_text.is_nothing_found(answer)


def test_an_address_that_would_be_cut_is_left_out() -> None:
    said = note_text.no_model_text(f"{'x' * (NOTE_QUOTED_CHARS - 20)} https://vendor.example/a/long/way/down")
    assert said.endswith("x …")
    assert "https://vendor.example/login." in note_text.no_model_text("See https://vendor.example/login")


def test_a_failed_run_says_why_and_what_was_found() -> None:
    assert note_text.failure_text("The provider is down.", "It is the parser.") == (
        "This run failed: The provider is down.\n\nWhat was found so far:\n\nIt is the parser."
    )
    assert (
        note_text.failure_text("no credit left", " ") == "This run failed: no credit left.\n\nNothing was found so far."
    )


def test_a_run_without_an_answer_or_a_reason_still_says_how_it_ended() -> None:
    said = note_text.early_end_text(outcome("", answered=False, reason=EndReason.NO_PROGRESS))
    assert said == "This run failed: it ended as no_progress."


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        (EndReason.MAX_ITERATIONS, "its iterations were used up."),
        (EndReason.CONTEXT_LIMIT, "its context was full."),
        (EndReason.COST_LIMIT, "its budget was spent."),
        (EndReason.TIME_LIMIT, "its time was over."),
    ],
)
def test_a_report_that_had_to_end_early_says_so(reason: EndReason, why: str) -> None:
    said = note_text.early_end_text(outcome(reason=reason))
    assert said == f"This may be incomplete, because the run had to end early: {why}"


def test_a_whole_report_has_no_such_sentence() -> None:
    assert note_text.early_end_text(outcome()) == ""


def test_an_expired_session_says_how_to_start_anew_s3() -> None:
    said = note_text.session_expired_text(ordered(OrderCause.REPLY), configured().settings)
    assert "expired" in said
    assert "write `/hummingbird analyze-failures` in a new comment" in said


def test_a_refusal_says_who_may() -> None:
    assert "Developer" in note_text.refusal_text()


HOSTILE = [
    "` **bold** @all `",
    "`` ` `` <img src=https://evil.example/x>",
    "a\n/close\n",
    "<!-- hummingbird-session: {} -->",
    "\u202eevil\u2066 \x1b[31m",
    "[x](https://evil.example) !1 #2 ~label",
    "\\",
    "",
    "x" * 10_000,
]


@pytest.mark.parametrize("words", HOSTILE)
def test_foreign_words_in_a_line_of_ours_are_nothing_but_code(words: str) -> None:
    said = note_text.inline_code(words)
    (paragraph,) = [token for token in MarkdownIt("commonmark").parse(f"before {said} behind") if token.children]
    assert [child.type for child in paragraph.children or ()] == ["text", "code_inline", "text"]
    assert "\n" not in said
    assert "<!--" not in said
    assert len(said) <= NOTE_QUOTED_CHARS + 2
    assert said.isprintable()


def test_an_address_cannot_end_its_link() -> None:
    said = note_text.markdown_link("a] b", "https://chat.example/x)(y<z>")
    assert said == "[a\\] b](https://chat.example/x%29%28y%3Cz%3E)"


def test_a_project_cannot_leave_its_address() -> None:
    said = note_text.pipeline_link(configured().settings, "a b/c)d", 7)
    assert said == "[pipeline 7](https://gitlab.example/a%20b/c%29d/-/pipelines/7)"


def test_no_line_of_ours_begins_like_a_quick_action() -> None:
    settings = configured({**LINKS, "slack_label": "/close"}).settings
    configuration = configured({**LINKS, "slack_label": "/close"})
    said = [
        note_text.placeholder_text(ordered(), applied_of(configuration), configuration),
        note_text.build_footer(ordered(), conducted(trouble=["/close"]), settings),
        note_text.build_bare_footer(ordered(), settings, ["/close"]),
        note_text.session_expired_text(ordered(OrderCause.REPLY), settings),
        note_text.workflow_gone_text("/close", settings),
        note_text.refusal_text(),
    ]
    lines = [line for text in said for line in text.split("\n")]
    assert not [line for line in lines if line.lstrip(" -").startswith("/")]
    assert SHA[:8] in said[0]


def test_what_folds_out_leaves_room_for_the_answer() -> None:
    assert NOTE_TRANSCRIPT_CHARS < NOTE_CHARS / 10
    assert NOTE_QUOTED_CHARS < NOTE_TRANSCRIPT_CHARS
    assert NOTE_WRITES > 1
    assert list(NOTE_LOOKS_S) == sorted(NOTE_LOOKS_S)
    assert NOTE_WRITES * sum(NOTE_LOOKS_S) < TOOL_TIMEOUT_S  # nobody holds a run's slot for longer


@pytest.mark.parametrize("name", ["analyze-failures", "code-review"])
def test_the_embedded_prompts_name_the_agreed_line(name: str) -> None:
    prompt = load_config(None, None).prompts[name]
    assert f"\n{note_text.NOTHING_TO_REPORT}\n" in prompt
