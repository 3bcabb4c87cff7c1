"""What people type is a question, whatever it is."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.core.protocols.sessions import MATCH_BEGINS, MATCH_ENDS, SessionIndex
from hummingbird.core.sessions import SEARCH_ASKED, SEARCH_WORDS
from hummingbird.storage.session_index import SqliteSessionIndex, build_queries
from tests.storage.indexed_sessions import bare, found, made, put, session
from tests.thoroughly import tries

SHA = "3f9c2ab417de5508c1b2a7f09e6d4c3b2a190807"
TEXTS = {
    "name": "calls foo_bar.baz(1) twice",
    "path": "see src/a/b.py:12 and src/a/c.py:13",
    "sha": f"at commit {SHA}",
    "accents": "Über die Straße, déjà vu, İstanbul",
    "chinese": "数据库连接失败了",
    "japanese": "テストが失敗しました in CI",
    "order": "NEAR the end AND not OR here",
    "long": "alpha beta gamma delta",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SqliteSessionIndex:
    return made(tmp_path_factory.mktemp("index") / "index.sqlite")


@pytest.fixture(autouse=True)
async def filled(index: SessionIndex) -> None:
    if not await index.stamps():
        for name, text in TEXTS.items():
            await put(index, name, session(name, text))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("foo_bar.baz", "name"),
        ("bar.baz", "name"),
        ("BAZ", "name"),
        ("foo_bar.b", ""),
        ("calls foo_ba", "name"),
        ("foo_bar.baz(", "name"),
        ("src/a/b.py:12", "path"),
        ("b.py", "path"),
        ("a/c.py:13", "path"),
        (SHA, "sha"),
        (SHA[:7], "sha"),
        (f"{SHA[:8].upper()} commit", "sha"),
        ("uber", "accents"),
        ("deja VU", "accents"),
        ("istanbul", "accents"),
        ("数据", "chinese"),
        ("连接失败", "chinese"),
        ("失", "chinese japanese"),
        ("失敗しました", "japanese"),
        ("alpha del", "long"),
        ("alpha delta", "long"),
        ('"beta gamma"', "long"),
        ('"beta gamma" alph', "long"),
        ('"alpha gamma"', ""),
        ('"beta gam"', ""),
        ("alpha de", "long"),
        ("de", ""),
        ("alpha nowhere", "long"),
        ("nowhere beta", "long"),
        ("NEAR", "order"),
        ("NEAR(end, 2)", ""),
        ("NEAR( end, 2)", "order"),
        ("text:alpha", ""),
        ("alpha -beta", "long"),
        ("alpha*", "long"),
        ("^alpha", "long"),
        ('"alpha', "long"),
        ("(alpha", "long"),
        ("{alpha} + ", "long"),
        ("alpha\x00beta", "long"),
        ("'; DROP TABLE words; --", ""),
        ("🐦", ""),
        ("🐦 alpha", "long"),
        ("\ud800alpha", "long"),
        ("", ""),
        ('""', ""),
        ("***", ""),
        (f"{MATCH_BEGINS}alpha{MATCH_ENDS}", "long"),
    ],
)
async def test_words_names_paths_and_commits_are_found_whole_and_by_their_parts(
    index: SessionIndex, query: str, expected: str
) -> None:
    assert sorted(await found(index, query)) == sorted(expected.split())


async def test_what_has_all_words_keeps_what_has_some_of_them_away(index: SessionIndex) -> None:
    assert await found(index, "see src/a/c.py:13") == ["path"]
    assert sorted(await found(index, "twice delta commit")) == ["long", "name", "sha"]


async def test_a_snippet_shows_texts_as_they_were(index: SessionIndex) -> None:
    shown = [bare(hit) for query in ("连接", "src/a/b.py", "strasse straße") for hit in await index.search(query)]
    assert shown == [
        "数据库[连接]失败了",
        "see [src/a/b.py]:12 and src/a/c.py:13",
        "Über die [Straße], déjà vu, İstanbul",
    ]


async def test_marks_in_a_text_are_not_taken_for_ours(tmp_path: Path) -> None:
    index = made(tmp_path / "index.sqlite")
    await put(index, "one", session("one", f"{MATCH_BEGINS}false{MATCH_ENDS} \x00\u2060tr\u2060ue"))
    (hit,) = await index.search("true")
    assert bare(hit) == "false  [true]"


@pytest.mark.parametrize(
    "paste", ["word " * 250_000, "x" * 1_000_000, "a." * 500_000, '"' * 1_000_000, "(" * 1_000_000, "失" * 400_000]
)
async def test_a_paste_of_a_megabyte_is_a_question_like_others(index: SessionIndex, paste: str) -> None:
    assert await found(index, paste) == []
    assert all(len(question.match) < 100_000 for question in build_queries(paste, 1))


def test_a_question_holds_the_longest_words_and_those_in_quotes() -> None:
    """Of as many words as are read."""
    words = [f"w{'x' * number}" for number in range(60)]
    first = next(build_queries(f'"in quotes" {" ".join(words)}', 1)).match
    assert first.count(" AND ") == SEARCH_ASKED - 1
    assert '"in quotes"' in first
    assert f'"{words[SEARCH_WORDS - 2]}"' in first
    assert words[SEARCH_WORDS] not in first


HOSTILE = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from([*'"*()-+:^{}, \0\ue000', "NEAR", "AND", "OR", "NOT", "text", "alpha", "失", "é"])).map(
        "".join
    ),
)


@settings(max_examples=tries(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HOSTILE)
async def test_no_question_is_refused(index: SessionIndex, query: str) -> None:
    for project in ("", query):
        for hit in await index.search(query, project=project):
            assert hit.snippet.count(MATCH_BEGINS) == hit.snippet.count(MATCH_ENDS) > 0


@pytest.mark.thorough
@settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1, max_size=80))
async def test_every_text_can_be_indexed_and_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    index = made(tmp_path_factory.mktemp("index") / "index.sqlite")
    await put(index, "one", session("one", f"anchor {text}"))
    (spoken,) = await index.texts_around("one", 3, 0, 0)
    expected = f"anchor {text}".replace("\0", " ")
    for sign in (MATCH_BEGINS, MATCH_ENDS, "\u2060"):
        expected = expected.replace(sign, "")
    assert spoken.text == expected
    assert await found(index, "anchor") == ["one"]
