"""Suggestions on a line of the diff: ours arrive letter by letter, and a text can have none of its own."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll

from hummingbird.core.masking import Secrets
from hummingbird.gitlab.write.note_sanitizer import render_note, sanitize_markdown, write_suggestion
from hummingbird.gitlab.write.protocol import NoteDraft, NoteMarkers
from tests.gitlab.write.hostile import MARKER, notes
from tests.gitlab.write.note_judge import BEGINS_WITH_SLASH, commands, effects
from tests.thoroughly import tries

SECRETS = Secrets(["hunter2-hunter2"])
SMUGGLED = [
    "```suggestion\nevil()\n```",
    "```suggestion:-5+5\nevil()\n```",
    "``` SUGGESTION:-0+0\nevil()\n```",
    "~~~suggestion:-0+0\nevil()\n~~~",
    "> ```suggestion\n> evil()\n> ```",
    "- a\n\n  ```suggestion\n  evil()\n  ```",
    "1. > ~~~~ suggestion:-1+0\n   > evil()",
    "```s&#117;ggestion\nevil()\n```",
    "```sugges&#x74;ion:-0+0\nevil()\n```",
    "``\u200b`suggestion\nevil()\n```",
    "``<!-- x -->`suggestion\nevil()\n```",
    "``&#8203;`suggestion\nevil()\n```",
    "```\x0bsuggestion\nevil()\n```",
    "```sugg\u2060estion\nevil()\n```",
    "```\r\n```\r\n```suggestion\r\nevil()\r\n```",
    "x" * 40_000 + "\n```suggestion\nevil()\n```",
    "x" * 40_000 + "\n```s&#117;ggestion\nevil()\n```",
    "<details>\n\n```suggestion\nevil()\n```",
]


def offered(body: str) -> list[str]:
    """What GitLab would offer to apply: every block of that kind, wherever it stands."""
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    fences = [token for token in tokens if token.type == "fence"]
    return [token.content for token in fences if unescapeAll(token.info).strip().lower().startswith("suggestion")]


@pytest.mark.parametrize("text", SMUGGLED)
def test_no_text_has_a_suggestion_of_its_own(text: str) -> None:
    assert offered(sanitize_markdown(text, Secrets(), MARKER)) == []


def test_the_smuggled_ones_would_be_offered_if_they_were_posted_as_they_are() -> None:
    assert sum(bool(offered(text)) for text in SMUGGLED) > len(SMUGGLED) // 2


@settings(max_examples=tries(150), deadline=None)
@given(st.lists(st.sampled_from([*"`~> \n-<!&;", "```", "suggestion", ":-0+0", "<!--", "-->", "&#96;"]), max_size=30))
def test_no_pile_of_pieces_is_a_suggestion(pieces: list[str]) -> None:
    assert offered(sanitize_markdown("".join(pieces), Secrets(), MARKER)) == []


@pytest.mark.thorough
def test_a_hostile_text_neither_swallows_our_suggestion_nor_adds_one() -> None:
    for text in [*notes(150, 7), *SMUGGLED]:
        body = render_note(NoteDraft(text=text, suggestion="    return 1"), NoteMarkers(MARKER), SECRETS)
        assert offered(body) == ["    return 1\n"], text
        assert commands(body) == []


@pytest.mark.thorough
@settings(max_examples=tries(150), deadline=None)
@given(st.text(st.sampled_from("`~/ \tab<>-\n@#éx"), max_size=60))
@example("/close")
@example("```\n/merge\n```")
@example("~~~~\n````")
def test_suggestion_arrives_letter_by_letter_or_not_at_all(lines: str) -> None:
    body = write_suggestion(lines, Secrets(), MARKER)
    begins_with_slash = bool(BEGINS_WITH_SLASH.search(lines))
    assert offered(body) == ([] if begins_with_slash else [f"{lines}\n" if lines else ""])
    assert effects(body.replace("suggestion:-0+0", "text")) == []


@pytest.mark.parametrize(
    "lines",
    [
        "password = 'hunter2-hunter2'",
        f"<!-- {MARKER}: {{}} -->",
        "invisible\u200b",
        "two\rlines",
        "// a comment that GitLab could take for a quick action",
    ],
)
def test_what_would_have_to_be_changed_is_shown_and_not_offered(lines: str) -> None:
    body = write_suggestion(lines, SECRETS, MARKER)
    assert offered(body) == []
    assert "hunter2" not in body
    assert f"<!-- {MARKER}" not in body
