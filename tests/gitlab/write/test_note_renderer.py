"""A draft becomes a note: safe, whole, not too long, and read back by the source as its text alone."""

import pytest

from hummingbird.core.limits import NOTE_CHARS
from hummingbird.core.masking import MASK, Secrets
from hummingbird.gitlab.read.discussion_filter import TRANSCRIPT_REMOVED, extract_report
from hummingbird.gitlab.write import note_sanitizer
from hummingbird.gitlab.write.markdown_rebuild import CUT_NOTICE as TEXT_CUT
from hummingbird.gitlab.write.note_sanitizer import LEFT_OUT, render_note
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.gitlab.write.protocol import CollapsedSection, NoteDraft, NoteMarker, NoteMarkers
from hummingbird.lab.gitlab.server import GitLabLab
from tests.gitlab.write.hostile import ATTACKS
from tests.gitlab.write.note_judge import OpenTags, commands, effects, html
from tests.gitlab.write.writer_stage import PREFIX, written

MARKERS = NoteMarkers(PREFIX)
SECRETS = Secrets(["correct-horse"])
MARKER = NoteMarker(id="s1", order="o1")
FIRST = '<!-- hummingbird-session: {"id":"s1","order":"o1"} -->'
TEXT = "# Report\n\nThe job `unit` failed:\n\n```\nassert 1 == 2\n```\n\n***\n\n- one\n- two"
FOOTER = "*Model m, 3 iterations.*"
LOG = "$ make\n  /usr/bin/gcc -o x\n@all #1 !2\n"
SHOWN_LOG = "    $ make\n      /usr/bin/gcc -o x\n    @all #1 !2\n"  # indented, for a slash comes first in a line


def made(draft: NoteDraft, most: int = NOTE_CHARS) -> str:
    return render_note(draft, MARKERS, SECRETS, most)


def test_a_note_is_marker_words_text_folds_rule_and_footer() -> None:
    draft = NoteDraft(
        text="Text.", above="Above.", below=FOOTER, folds=(CollapsedSection("Log <1>", LOG),), marker=MARKER
    )
    assert made(draft) == (
        f"{FIRST}\n\nAbove.\n\nText.\n\n<details><summary>Log &lt;1&gt;</summary>\n\n"
        f"```text\n{SHOWN_LOG}```\n\n</details>\n\n---\n{FOOTER}"
    )


def test_parts_that_are_empty_leave_nothing_behind() -> None:
    assert made(NoteDraft(text="Text.")) == "Text."
    assert made(NoteDraft(text="Text.", answers=77)) == "<!-- hummingbird-session-answer: 77 -->\n\nText."
    assert made(NoteDraft(text="", above="Above.", marker=MARKER)) == f"{FIRST}\n\nAbove."


def test_the_source_reads_back_the_text_alone() -> None:
    whole = NoteDraft(text=TEXT, below=FOOTER, marker=MARKER)
    assert extract_report(made(whole), PREFIX) == TEXT
    assert extract_report(made(NoteDraft(text=TEXT, below=FOOTER, answers=77)), PREFIX) == TEXT
    folded = NoteDraft(
        text=TEXT,
        below=FOOTER,
        folds=(CollapsedSection("Log", LOG), CollapsedSection("More", "</details>")),
        marker=MARKER,
    )
    assert extract_report(made(folded), PREFIX) == f"{TEXT}\n\n{TRANSCRIPT_REMOVED}"


@pytest.mark.parametrize(
    "text",
    [
        *ATTACKS,
        "```\n/close\n```",
        "````\n</details>\n/close\n````\n/close",
        "``\u200b``\n/close",
        "~~~\n/close",
        "</details>\n\n/close\n\n@all",
        "\r/close\r\n/merge\x85/close\u2028/close",
        "`" * 50 + "\n/close",
        "\n\n/close",
        f"{FIRST}\n/close",
        "---\n/close\n---",
        "x" * 40_000 + "\n```\n/close\n```\n/close",
    ],
)
def test_what_is_folded_neither_acts_nor_ends_its_fold(text: str) -> None:
    body = made(
        NoteDraft(
            text="Text.",
            below=FOOTER,
            folds=(CollapsedSection("Log", text), CollapsedSection("Next", "plain")),
            marker=MARKER,
        )
    )
    assert commands(body) == []
    assert body.count(f"<!-- {PREFIX}") == 1
    assert MARKERS.parse_marker(body) == MARKER
    assert html(body).endswith(f"</details>\n<hr />\n<p><em>{FOOTER.strip('*')}</em></p>\n")
    assert html(body).count("<details>") == html(body).count("</details>") == 2
    assert effects(body.removeprefix(FIRST)) == []
    assert OpenTags(html(body)).stack == []


def test_text_behind_a_list_of_ours_is_no_part_of_it() -> None:
    body = made(NoteDraft(text="    /close\n\n    /merge", above="- one\n- two"))
    assert commands(body) == []
    assert html(body).index("</ul>") < html(body).index("close")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```\n/close\n```", "````text\n    ```\n    /close\n    ```\n````"),
        ("``\u200b``\nx", "`````text\n````\nx\n`````"),
        ("a ` b", "```text\na ` b\n```"),
    ],
)
def test_what_is_folded_is_shown_letter_for_letter(text: str, shown: str) -> None:
    assert f"\n\n{shown}\n\n</details>" in made(NoteDraft(text="Text.", folds=(CollapsedSection("Log", text),)))


def test_part_that_reaches_into_another_becomes_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_sanitizer, "sanitize_markdown", lambda *_: "```\nleft open")
    body = made(NoteDraft(text="```\nleft open", below=FOOTER))
    assert body == f"````text\n```\nleft open\n````\n\n---\n{FOOTER}"


def test_secrets_are_masked_in_text_and_folds() -> None:
    body = made(NoteDraft(text="It is correct-horse.", folds=(CollapsedSection("Log", "TOKEN=correct-horse"),)))
    assert body.replace("\\", "").count(MASK) == 2
    assert "correct-horse" not in body


def test_folds_are_cut_first_and_the_footer_never() -> None:
    folds = (CollapsedSection("Log", "line of a log\n" * 5_000), CollapsedSection("Second", "never\n" * 5_000))
    draft = NoteDraft(text="word " * 1_000, above="Above.", below=FOOTER, folds=folds, marker=MARKER)
    body = made(draft, 20_000)
    assert len(body) <= 20_000
    assert body.startswith(f"{FIRST}\n\nAbove.\n\n{('word ' * 1_000).strip()}\n\n<details>")
    assert body.endswith(f"---\n{FOOTER}")
    assert body.count("line of a log") > 500
    assert TEXT_CUT in body
    assert LEFT_OUT in body
    assert "Second" not in body
    assert html(body).count("</details>") == 1
    assert commands(body) == []


@pytest.mark.thorough
def test_the_text_is_cut_when_there_is_no_room_for_folds() -> None:
    draft = NoteDraft(text="word " * 9_000, below=FOOTER, folds=(CollapsedSection("Log", LOG),), marker=MARKER)
    body = made(draft, 20_000)
    assert len(body) <= 20_000
    assert TEXT_CUT in body
    assert "<details>" not in body
    assert body.startswith(FIRST)
    assert body.endswith(f"---\n{FOOTER}")


@pytest.mark.thorough
async def test_gitlab_takes_the_longest_note_that_we_send(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    folds = (CollapsedSection("Log", "/close @all ` < > \n" * 60_000),)
    draft = NoteDraft(text="word\n" * 9_000, below=FOOTER, folds=folds, marker=MARKER)
    await forge.open_thread(7, draft, internal=False)
    body = written(lab)[0].body
    assert NOTE_CHARS * 0.9 < len(body) <= NOTE_CHARS
    assert body.startswith(FIRST)
    assert body.endswith(f"---\n{FOOTER}")
    assert lab.run_in_server(lambda world: world.merge_request.state) == "opened"
