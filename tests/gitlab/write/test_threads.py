"""Which notes are ours, and what their markers say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.orders import RunOverrides
from hummingbird.gitlab.write.api_response import parse_thread
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.gitlab.write.protocol import NoteDraft, NoteKind, NoteMarker, NoteMarkers
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.gitlab.write.writer_stage import PREFIX, asked, forging

MARKERS = NoteMarkers(PREFIX)
UUID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
MARKER = '<!-- hummingbird-session: {"id":"s1"} -->'


def note(body: str = MARKER, **more: Any) -> dict[str, Any]:
    return {"id": 1, "body": body, "author": {"id": 91}, "resolvable": True, "resolved": False, **more}


def marker_in(**more: Any) -> NoteMarker | None:
    thread = parse_thread({"id": "d", "notes": [note(**more)]}, frozenset({91}), MARKERS)
    return thread.marker if thread else None


@given(st.text(), st.text(min_size=1), st.sampled_from(NoteKind), st.text(), st.integers(0, 500))
def test_every_marker_is_read_back_as_it_was_written(
    wf: str, name: str, part: NoteKind, model: str, iterations: int
) -> None:
    overrides = RunOverrides(model=model, max_iterations=iterations)
    marker = NoteMarker(
        id=name, wf=wf, sha="e" * 40, order="o-->", part=part, overrides=overrides, finding="--><!--", patch="--"
    )
    line = MARKERS.format_marker(NoteDraft(text="", marker=marker))
    assert line.count("-->") == line.count("<!--") == 1
    assert line.removeprefix("<!--").removesuffix("-->").count("--") == 0
    assert line.isascii()
    assert line.isprintable()
    if len(line) <= 4_096:
        assert MARKERS.parse_marker(f"{line}\n\nText.") == marker


@pytest.mark.parametrize("body", [f"<!-- {PREFIX}: {UUID} -->\nText", f"Text\n\n<!--{PREFIX}:{UUID}-->\n"])
def test_an_old_marker_is_an_id_alone_at_either_end(body: str) -> None:
    assert MARKERS.parse_marker(body) == NoteMarker(id=UUID)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "Text",
        f"Text\n{MARKER}\nText",
        f"> {MARKER}",
        f"```\n{MARKER}\n```",
        f"Text {MARKER}",
        f"{MARKER} Text",
        f"{MARKER}{MARKER}",
        "<!-- hummingbird-session: -->",
        "<!-- hummingbird-session: {} -->",
        '<!-- hummingbird-session: {"id":""} -->',
        '<!-- hummingbird-session: {"id":7} -->',
        '<!-- hummingbird-session: {"id":"s1","part":"none"} -->',
        '<!-- hummingbird-session: {"id":"s1" -->',
        '<!-- hummingbird-session: ["s1"] -->',
        "<!-- hummingbird-session: " + "[" * 3_000 + " -->",
        "<!-- hummingbird-session: not-a-uuid -->",
        "<!-- hummingbird-session-answer: 77 -->",
        '<!-- other: {"id":"s1"} -->',
        '<!-- hummingbird-session: {"id":"' + "s" * 5_000 + '"} -->',
    ],
)
def test_what_is_no_marker_or_stands_elsewhere_is_none(body: str) -> None:
    assert MARKERS.parse_marker(body) is None


def test_a_newer_marker_may_say_more_than_we_know() -> None:
    assert MARKERS.parse_marker('<!-- hummingbird-session: {"id":"s1","later":[1]} -->') == NoteMarker(id="s1")


@pytest.mark.parametrize(
    ("body", "answered"),
    [
        ("<!-- hummingbird-session-answer: 77 -->\nx", 77),
        ("<!-- hummingbird-session-answer: 0 -->", 0),
        ("<!-- hummingbird-session-answer: -7 -->", 0),
        ("<!-- hummingbird-session-answer: ٣ -->", 0),
        (MARKER, 0),
    ],
)
def test_an_answer_names_a_note(body: str, answered: int) -> None:
    assert MARKERS.parse_answer_target(body) == answered


def test_only_the_bots_own_words_count() -> None:
    assert marker_in() == NoteMarker(id="s1")
    assert marker_in(author={"id": 13}) is None
    assert marker_in(author=None) is None
    assert marker_in(author={"id": True}) is None
    assert marker_in(system=True) is None


def test_the_first_marker_of_a_thread_wins() -> None:
    other = MARKER.replace("s1", "s2")
    notes = [note("Hm.", author={"id": 13}), note(), note(other)]
    thread = parse_thread({"id": "d", "notes": notes}, frozenset({91}), MARKERS)
    assert thread is not None
    assert thread.marker == NoteMarker(id="s1")


@pytest.mark.parametrize("name", ["internal", "confidential"])
def test_facts_2_3_an_internal_note_is_one_by_either_of_its_names(name: str) -> None:
    thread = parse_thread({"id": "d", "notes": [{**note(), name: True}]}, frozenset(), MARKERS)
    assert thread is not None
    assert thread.internal


def test_facts_2_3_a_thread_is_resolved_when_all_that_can_be_is() -> None:
    def resolved(*notes: dict[str, Any]) -> bool:
        thread = parse_thread({"id": "d", "notes": list(notes)}, frozenset(), MARKERS)
        assert thread is not None
        return thread.resolved

    assert resolved(note(resolved=True), note(resolvable=False, resolved=None))
    assert not resolved(note(resolved=True), note())
    assert not resolved(note(resolvable=False))


async def test_threads_of_a_former_bot_are_still_ours(lab: GitLabLab) -> None:
    async with forging(lab.url, "bot") as old:
        await old.forge.open_thread(7, NoteDraft(text="x", marker=NoteMarker(id="s1")), internal=False)
    async with forging(lab.url, "maintainer") as stranger:
        assert (await stranger.forge.threads(7))[-1].marker is None
    async with forging(lab.url, "maintainer", former_bot_ids=(91, 0)) as new:
        assert await new.forge.bot_ids() == {12, 91}
        thread = (await new.forge.threads(7))[-1]
        assert (thread.marker, thread.notes[0].by_bot, thread.notes[0].author_id) == (NoteMarker(id="s1"), True, 91)


async def test_who_the_bot_is_is_asked_once(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    for _ in range(3):
        await forge.threads(7)
    assert (await forge.bot_ids(), asked(lab, "GET", "/user")) == (frozenset({91}), 1)


async def test_facts_2_3_all_pages_are_read_oldest_first_though_some_are_short(lab: GitLabLab) -> None:
    def add(world: GitLabWorld) -> None:
        for number in range(320):
            internal = 90 <= number < 230
            added = world.new_note(world.users[0], f"Note {number}", internal=internal)
            world.add_discussion(world.merge_request, added, individual=True)

    lab.run_in_server(add)
    async with forging(lab.url, "guest") as bench:
        found = await bench.forge.threads(7)
    assert len(found) == 1 + 320 - 140
    assert [thread.notes[0].id for thread in found] == sorted(thread.notes[0].id for thread in found)
    assert asked(lab, "GET", "/discussions") == 4


async def test_what_gitlab_writes_itself_is_no_thread(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.run_in_server(lambda world: world.add_system_note(world.merge_request, world.user(91), MARKER))
    assert [thread.id for thread in await forge.threads(7)] == ["c" * 40]
