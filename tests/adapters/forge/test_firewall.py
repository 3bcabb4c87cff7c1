"""Nothing that a model writes acts on GitLab (N5, I10): generated notes, and the lab as judge."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.adapters.forge.firewall import safe
from hummingbird.domain.limits import NOTE_PARSED_CHARS
from hummingbird.domain.secrets import Secrets
from hummingbird.lab.gitlab.lab import GitLabLab
from hummingbird.lab.gitlab.records import Change
from tests.adapters.forge.hostile import ATTACKS, COMMANDS, LEADS, MARKER, PLACES, notes
from tests.adapters.forge.judging import Seen, commands, html
from tests.lab.gitlab.written_case import Person, served
from tests.thoroughly import tries

SECRETS = Secrets(["correct-horse"])
FOOTER = "*Footer of ours.*"
GENERATED = list(notes(1200, seed=5))


def made(markdown: str) -> str:
    return safe(markdown, SECRETS, MARKER)


def harmless(body: str) -> None:
    """Also with what we put behind it."""
    assert commands(body) == []
    assert commands(f"{body}\n\n{FOOTER}") == []
    seen = Seen(body)
    assert seen.faults == []
    assert seen.comments == []
    assert seen.stack == []
    assert f"<!-- {MARKER}" not in body
    assert f"<!--\t{MARKER}" not in body
    assert html(f"{body}\n\n{FOOTER}").endswith("<p><em>Footer of ours.</em></p>\n")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path) as lab:
        yield lab


@pytest.mark.parametrize("start", range(0, 1200, 100))
def test_n5_no_generated_note_acts(start: int) -> None:
    for note in GENERATED[start : start + 100]:
        harmless(made(note))


def test_the_generated_notes_would_act_if_they_were_posted_as_they_are() -> None:
    assert sum(bool(commands(note)) for note in GENERATED) > 300
    assert sum(bool(Seen(note).faults) for note in GENERATED) > 300


def test_n5_what_was_made_safe_stays_as_it_is() -> None:
    settled = [body for note in GENERATED[:400] if "\u2060" not in (body := made(note))]
    assert len(settled) > 100
    assert [made(body) for body in settled] == settled


@settings(max_examples=tries(300), deadline=None)
@given(
    st.lists(st.sampled_from((*PLACES, *ATTACKS, *COMMANDS, *LEADS, "\n", "\n\n", " ", "> ", "- ", "|")), max_size=12)
)
def test_n5_no_pile_of_pieces_acts(pieces: list[str]) -> None:
    harmless(made("".join(pieces).replace("{}", "/close @all")))


@settings(max_examples=tries(300), deadline=None)
@given(st.text("/closemrg@ \n\t`~>-*_#![]()<>&;|:$\\=+1a\r\u200b", max_size=60))
def test_n5_no_jumble_of_signs_acts(text: str) -> None:
    harmless(made(text))


def test_n5_very_long_notes_are_made_safe_without_the_parser() -> None:
    long = "word " * (NOTE_PARSED_CHARS // 5) + "\n\n"
    for note in GENERATED[:150]:
        body = made(long + note)
        assert commands(body) == []
        assert Seen(body).faults == []


def test_i10_no_note_that_is_posted_is_carried_out_and_each_arrives_as_it_was_sent(lab: GitLabLab) -> None:
    heard: list[Change] = []
    lab.world.listeners.append(heard.append)
    person = Person(lab, "bot")
    for number, note in enumerate(GENERATED[:330]):
        if number % 50 == 0:
            lab.world.advance(60)
        body = made(note)
        if body.strip():
            assert person.mr.notes.create({"body": body}).body == body
    person.close()
    assert {each.kind for each in heard} == {"note"}
    assert lab.ask(lambda world: world.merge_request.state) == "opened"
