"""A draft becomes a note (N5, N7): safe, whole, not too long, and read back by the source as its text alone (D3)."""

import pytest

from hummingbird.adapters.forge import rendering
from hummingbird.adapters.forge.markdown_rebuild import CUT as TEXT_CUT
from hummingbird.adapters.forge.markers import Markers
from hummingbird.adapters.forge.rendering import LEFT_OUT, rendered
from hummingbird.adapters.forge.writing import GitLabForge
from hummingbird.adapters.sources.gitlab.own_notes import CUT, report_of
from hummingbird.domain.limits import NOTE_CHARS
from hummingbird.domain.notes import Draft, Fold, Marker
from hummingbird.domain.secrets import MASK, Secrets
from hummingbird.lab.gitlab.lab import GitLabLab
from tests.adapters.forge.forging import PREFIX, written
from tests.adapters.forge.hostile import ATTACKS
from tests.adapters.forge.judging import OpenTags, commands, effects, html

MARKERS = Markers(PREFIX)
SECRETS = Secrets(["correct-horse"])
MARKER = Marker(id="s1", order="o1")
FIRST = '<!-- hummingbird-session: {"id":"s1","order":"o1"} -->'
TEXT = "# Report\n\nThe job `unit` failed:\n\n```\nassert 1 == 2\n```\n\n***\n\n- one\n- two"
FOOTER = "*Model m, 3 iterations.*"
LOG = "$ make\n  /usr/bin/gcc -o x\n@all #1 !2\n"
SHOWN_LOG = "    $ make\n      /usr/bin/gcc -o x\n    @all #1 !2\n"  # indented, for a slash comes first in a line


def made(draft: Draft, most: int = NOTE_CHARS) -> str:
    return rendered(draft, MARKERS, SECRETS, most)


def test_n7_a_note_is_marker_words_text_folds_rule_and_footer() -> None:
    draft = Draft(text="Text.", above="Above.", below=FOOTER, folds=(Fold("Log <1>", LOG),), marker=MARKER)
    assert made(draft) == (
        f"{FIRST}\n\nAbove.\n\nText.\n\n<details><summary>Log &lt;1&gt;</summary>\n\n"
        f"```text\n{SHOWN_LOG}```\n\n</details>\n\n---\n{FOOTER}"
    )


def test_parts_that_are_empty_leave_nothing_behind() -> None:
    assert made(Draft(text="Text.")) == "Text."
    assert made(Draft(text="Text.", answers=77)) == "<!-- hummingbird-session-answer: 77 -->\n\nText."
    assert made(Draft(text="", above="Above.", marker=MARKER)) == f"{FIRST}\n\nAbove."


def test_d3_the_source_reads_back_the_text_alone() -> None:
    whole = Draft(text=TEXT, below=FOOTER, marker=MARKER)
    assert report_of(made(whole), PREFIX) == TEXT
    assert report_of(made(Draft(text=TEXT, below=FOOTER, answers=77)), PREFIX) == TEXT
    folded = Draft(text=TEXT, below=FOOTER, folds=(Fold("Log", LOG), Fold("More", "</details>")), marker=MARKER)
    assert report_of(made(folded), PREFIX) == f"{TEXT}\n\n{CUT}"


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
def test_n5_what_is_folded_neither_acts_nor_ends_its_fold(text: str) -> None:
    body = made(Draft(text="Text.", below=FOOTER, folds=(Fold("Log", text), Fold("Next", "plain")), marker=MARKER))
    assert commands(body) == []
    assert body.count(f"<!-- {PREFIX}") == 1
    assert MARKERS.marker(body) == MARKER
    assert html(body).endswith(f"</details>\n<hr />\n<p><em>{FOOTER.strip('*')}</em></p>\n")
    assert html(body).count("<details>") == html(body).count("</details>") == 2
    assert effects(body.removeprefix(FIRST)) == []
    assert OpenTags(html(body)).stack == []


def test_n5_text_behind_a_list_of_ours_is_no_part_of_it() -> None:
    body = made(Draft(text="    /close\n\n    /merge", above="- one\n- two"))
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
def test_n7_what_is_folded_is_shown_letter_for_letter(text: str, shown: str) -> None:
    assert f"\n\n{shown}\n\n</details>" in made(Draft(text="Text.", folds=(Fold("Log", text),)))


def test_part_that_reaches_into_another_becomes_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "sanitize_markdown", lambda *_: "```\nleft open")
    body = made(Draft(text="```\nleft open", below=FOOTER))
    assert body == f"````text\n```\nleft open\n````\n\n---\n{FOOTER}"


def test_i1_secrets_are_masked_in_text_and_folds() -> None:
    body = made(Draft(text="It is correct-horse.", folds=(Fold("Log", "TOKEN=correct-horse"),)))
    assert body.replace("\\", "").count(MASK) == 2
    assert "correct-horse" not in body


def test_n5_folds_are_cut_first_and_the_footer_never() -> None:
    folds = (Fold("Log", "line of a log\n" * 5_000), Fold("Second", "never\n" * 5_000))
    draft = Draft(text="word " * 1_000, above="Above.", below=FOOTER, folds=folds, marker=MARKER)
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
def test_n5_the_text_is_cut_when_there_is_no_room_for_folds() -> None:
    draft = Draft(text="word " * 9_000, below=FOOTER, folds=(Fold("Log", LOG),), marker=MARKER)
    body = made(draft, 20_000)
    assert len(body) <= 20_000
    assert TEXT_CUT in body
    assert "<details>" not in body
    assert body.startswith(FIRST)
    assert body.endswith(f"---\n{FOOTER}")


@pytest.mark.thorough
async def test_n5_gitlab_takes_the_longest_note_that_we_send(lab: GitLabLab, forge: GitLabForge) -> None:
    folds = (Fold("Log", "/close @all ` < > \n" * 60_000),)
    draft = Draft(text="word\n" * 9_000, below=FOOTER, folds=folds, marker=MARKER)
    await forge.open_thread(7, draft, internal=False)
    body = written(lab)[0].body
    assert NOTE_CHARS * 0.9 < len(body) <= NOTE_CHARS
    assert body.startswith(FIRST)
    assert body.endswith(f"---\n{FOOTER}")
    assert lab.ask(lambda world: world.merge_request.state) == "opened"
