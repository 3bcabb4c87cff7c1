"""Nothing that a model writes acts on GitLab: generated notes, with the lab as judge."""

import re
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.core.limits import NOTE_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.gitlab.write import note_sanitizer, note_worker
from hummingbird.gitlab.write.markdown_rebuild import CUT_NOTICE
from hummingbird.gitlab.write.markdown_text import JOINER
from hummingbird.gitlab.write.note_sanitizer import sanitize_markdown
from hummingbird.lab.gitlab.records import WorldChange
from hummingbird.lab.gitlab.server import GitLabLab
from tests.gitlab.write.hostile import ATTACKS, COMMANDS, LEADS, MARKER, PLACES, notes
from tests.gitlab.write.note_judge import OpenTags, commands, effects, html
from tests.gitlab.write.ordinary import SAMPLES
from tests.lab.gitlab.written_case import Person, served
from tests.thoroughly import ALL, tries

pytestmark = pytest.mark.every_case

SECRETS = Secrets(["correct-horse-battery"])
FOOTER = "*Footer of ours.*"
GENERATED = list(notes(20_000 if ALL else 2_000, seed=5))


def sanitize(markdown: str, max_chars: int = NOTE_CHARS) -> str:
    return sanitize_markdown(markdown, SECRETS, MARKER, max_chars)


def check_harmless(body: str) -> None:
    """Also with what we put behind it."""
    assert effects(body) == []
    assert effects(f"{body}\n\n{FOOTER}") == []
    assert OpenTags(html(body)).stack == []
    assert html(f"{body}\n\n{FOOTER}").endswith("<p><em>Footer of ours.</em></p>\n")


@pytest.mark.parametrize("start", range(0, len(GENERATED), 200))
def test_no_generated_note_acts(start: int) -> None:
    for note in GENERATED[start : start + 200]:
        body = sanitize(note)
        assert effects(body) == [], note
        assert html(f"{body}\n\n{FOOTER}").endswith("<p><em>Footer of ours.</em></p>\n"), note


def test_generated_notes_would_act_if_posted_unchanged() -> None:
    """Otherwise the test above would prove nothing."""
    kinds = {effect.split(" ")[0] for note in GENERATED[:400] for effect in effects(note)}
    assert kinds >= {"executes", "line", "loads", "mentions", "refers", "links", "hides", "draws", "has"}
    assert sum(bool(commands(note)) for note in GENERATED[:400]) > 100


def test_few_notes_end_as_a_block_of_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is the second lock: a writer that relied on it would spoil every note."""
    refused: list[str] = []
    rebuild = note_worker.rebuild_note

    def rebuild_and_count(markdown: str, max_chars: int, *, was_cut: bool) -> note_worker.RebuiltNote:
        note = rebuild(markdown, max_chars, was_cut=was_cut)
        refused.extend([note.fault] if note.fault else [])
        return note

    monkeypatch.setattr(note_sanitizer, "rebuild_note", rebuild_and_count)
    for note in GENERATED[:400]:
        sanitize(note)
    assert len(refused) <= 4, refused


@pytest.mark.thorough
@settings(max_examples=tries(300), deadline=None)
@given(
    st.lists(st.sampled_from((*PLACES, *ATTACKS, *COMMANDS, *LEADS, "\n", "\n\n", " ", "> ", "- ", "|")), max_size=12)
)
def test_no_pile_of_pieces_acts(pieces: list[str]) -> None:
    check_harmless(sanitize("".join(pieces).replace("{}", "/close @all")))


@pytest.mark.thorough
@settings(max_examples=tries(300), deadline=None)
@given(st.text('/closemrg@ \n\t`~>-*_#![]()<>&;|:$\\=+1aA^{}"%\r\u200b', max_size=80))
def test_no_jumble_of_signs_acts(text: str) -> None:
    check_harmless(sanitize(text))


@pytest.mark.thorough
def test_sanitized_note_stays_as_it_is() -> None:
    settled = [body for note in GENERATED[:400] if JOINER not in (body := sanitize(note)) and "    /" not in body]
    assert len(settled) > 50
    assert [sanitize(body) for body in settled] == settled


def test_text_without_its_check_becomes_a_block_of_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_worker, "find_fault", lambda markdown: "a picture")
    assert sanitize("Some **text**\n/close") == "```text\n    Some **text**\n    /close\n```"


@pytest.mark.parametrize("around", ["{}", "```\n{}\n```", "`{}`", "    {}", "> - {}"])
@pytest.mark.parametrize("blank", ["", " ", "\t", "\n"])
def test_no_marker_of_ours_can_be_written_even_in_code(around: str, blank: str) -> None:
    body = sanitize(around.format(f'<!--{blank}{MARKER.upper()}: {{"id":"1"}} -->')).lower()
    assert not re.search(rf"<!--\s*{MARKER}", body)


@pytest.mark.parametrize("around", ["<pre>{}</pre>", "<code>{}</code>", "> <pre>{}</pre>"])
def test_no_marker_can_be_spelt_with_entities(around: str) -> None:
    body = sanitize(around.format(f"&lt;!-- {MARKER}: 1 --&gt;"))
    assert f"<!-- {MARKER}" not in body


@pytest.mark.parametrize("around", ["a{}", "- a{}", "> <pre>a{}</pre>", "<pre>a{}</pre>", "<code>a{}</code>", "# a{}"])
@pytest.mark.parametrize("end", ["&#13;", "&#13;&#13;", "&#11;", "&#12;", "&#x85;", "&#8232;"])
def test_no_line_is_ended_by_an_entity(around: str, end: str) -> None:
    body = sanitize(around.format(f"{end}/close"))
    assert body.splitlines() == body.split("\n")
    assert effects(body) == []


@pytest.mark.parametrize(
    "text",
    [
        "[x](3f786850e387550fdab836ed7e6dc881de23001b)",
        "[x](deadbeef..cafebabe)",
        "[x](AB2-1)",
        "%émile",
        "%-x",
        "x3f786850e387550fdab836ed7e6dc881de23001b",
        "ab" * 40,
    ],
)
def test_no_unusual_reference_is_left(text: str) -> None:
    page = re.sub("<code>.*?</code>", "", html(sanitize(text)))
    assert not re.search(r"[0-9a-f]{7}|%[^\s\u2060]|AB2-1", page)


@pytest.mark.parametrize("text", ["<div>&#{};</div>", "&#{};", '<a href="&#{};">x</a>', "&#0{};"])
@pytest.mark.parametrize("digit", "01")
def test_number_of_an_entity_may_have_any_length(text: str, digit: str) -> None:
    """Python refuses to read a number of more than 4,300 digits."""
    note = text.format(digit * 5000)
    assert sanitize(note)
    assert note_sanitizer.sanitize_code(note, SECRETS, MARKER).startswith("```text\n")


def test_hash_in_the_title_of_a_fold_stays_readable() -> None:
    body = sanitize("<details><summary>At deadbeefcafe</summary>x</details>")
    assert "<summary>At deadbeefcafe</summary>" in body.replace(JOINER, "")
    assert "deadbee" not in body


@pytest.mark.thorough
def test_secret_among_many_lines_does_not_hang() -> None:
    before = _cpu_seconds()
    body = note_sanitizer.sanitize_code("a\n" * 490_000 + "correct-<b>horse</b>-battery", SECRETS, MARKER)
    assert "horse" not in body
    assert _cpu_seconds() - before < 30, "one second on an idle machine"


@pytest.mark.parametrize(
    "hidden",
    [
        "correct-horse-battery",
        "correct\u200b-horse-battery",
        "correct&#45;horse&#x2d;battery",
        "correct\\-horse\\-battery",
        "correct-<!-- x -->horse-battery",
        "correct&shy;-horse-battery",
        "correct-&#8203;horse-&#x2060;battery",
        "correct-**horse**-battery",
        "correct<b>-horse</b>-battery",
        "`correct-horse-battery`",
        "```\ncorrect-horse-battery\n```",
    ],
)
def test_secret_is_masked_however_it_is_written(hidden: str) -> None:
    body = sanitize(f"It is {hidden}!")
    assert "[masked]" in body.replace("\\", "")
    assert "horse" not in body


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece", ["/close @all\n", "word ", "```\n/close\n", "<details>\n\n", "$", "- a\n  ```\n", "`", "&#64;"]
)
@pytest.mark.parametrize("max_chars", [400, 5000])
def test_too_long_text_is_cut_and_says_so(piece: str, max_chars: int) -> None:
    body = sanitize(piece * (2 * max_chars // len(piece)), max_chars)
    assert len(body) <= max_chars
    assert body.endswith(f"\n\n{CUT_NOTICE}")
    assert html(body).endswith(f"<p><em>{CUT_NOTICE.strip('*')}</em></p>\n")
    assert effects(body) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    [
        "!",
        "coding:",
        "^[",
        pytest.param("a@b.c ", marks=pytest.mark.thorough),
        pytest.param("<b>", marks=pytest.mark.thorough),
        pytest.param("> ", marks=pytest.mark.thorough),
        pytest.param("[a](", marks=pytest.mark.thorough),
        pytest.param("/close @all\n", marks=pytest.mark.thorough),
        pytest.param("a\n: b\n", marks=pytest.mark.thorough),
        pytest.param("A", marks=pytest.mark.thorough),
        pytest.param("[[a|", marks=pytest.mark.thorough),
    ],
)
def test_a_megabyte_of_anything_takes_bounded_cpu_time(piece: str) -> None:
    """CPU time, which a busy machine does not change much; the bound tells linear from quadratic."""
    before = _cpu_seconds()
    body = sanitize(piece * (NOTE_CHARS // len(piece)))
    assert _cpu_seconds() - before < 30, "two seconds on an idle machine"
    assert len(body) <= NOTE_CHARS


def _cpu_seconds() -> float:
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def test_child_that_dies_leaves_a_block_of_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(-24, "python")

    monkeypatch.setattr(subprocess, "run", die)
    assert sanitize("word @all\n" * 2000).startswith("```text\nword @all\n")


@pytest.mark.thorough
def test_long_text_is_rebuilt_in_a_child_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", "glpat-abcdefghij1234567890")
    seen: list[dict[str, str]] = []
    run: Any = subprocess.run

    def run_and_look(*arguments: Any, env: dict[str, str], **options: Any) -> Any:
        seen.append(env)
        return run(*arguments, env=env, **options)

    monkeypatch.setattr(subprocess, "run", run_and_look)
    body = sanitize("A **bold** word, @all.\n\n" * 500)
    assert body.startswith(f"A **bold** word, @{JOINER}all.")
    assert len(seen) == 1
    assert "GITLAB_TOKEN" not in seen[0]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path) as lab:
        yield lab


@pytest.mark.thorough
def test_no_posted_note_is_carried_out(lab: GitLabLab) -> None:
    heard: list[WorldChange] = []
    lab.world.listeners.append(heard.append)
    person = Person(lab, "bot")
    for number, note in enumerate(GENERATED[:150]):
        if number % 50 == 0:
            lab.world.advance(60)
        body = sanitize(note)
        if body.strip():
            assert person.mr.notes.create({"body": body}).body == body
    person.close()
    assert {each.kind for each in heard} == {"note"}
    assert lab.run_in_server(lambda world: world.merge_request.state) == "opened"


@pytest.mark.parametrize("sample", SAMPLES)
def test_ordinary_markdown_looks_as_before(sample: str) -> None:
    body = sanitize(sample)
    assert _normalized(html(body)) == _normalized(html(sample))
    assert effects(body) == []
    assert not body.startswith("```text") or sample.startswith("```text")


def _normalized(page: str) -> str:
    """Without what may differ: joiners, titles of links, layout between tags, code for hashes, indented code."""
    page = page.replace(JOINER, "").replace("%28", "(").replace("%29", ")")
    page = re.sub(r' title="[^"]*"', "", page)
    page = re.sub(r"</?(?:div|p)>", "", re.sub(r"<br ?/?>\s*", " ", page))
    page = re.sub(r"<code>([0-9a-f]{7,40})</code>", r"\1", page)
    return " ".join(re.sub(r"\s*(<[^>]+>)\s*", r"\1", page).split())
