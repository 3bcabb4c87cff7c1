"""A page of a list is read as it comes, whatever its keys' order and wherever it is cut."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.errors import SourceResponseInvalid
from hummingbird.konflux.servers import KubernetesListPage
from tests.thoroughly import also

Raw = dict[str, Any]
FIXTURES = Path(__file__).parents[1] / "fixtures"
LISTS = sorted([*FIXTURES.glob("evidence/tekton/list_*.json"), *FIXTURES.glob("tekton/list_*.json")])
ITEMS: list[Raw] = [
    {"metadata": {"uid": "1", "n": -1.5e3, "t": [True, False, None]}, "text": 'a "quoted" \\ ] } , \u20ac \U0001f600'},
    {},
    {"metadata": {"uid": "2"}, "deep": [[[{"a": []}]]]},
]


def read(content: bytes, size: int, page: KubernetesListPage | None = None) -> Iterator[Raw]:
    page = page or KubernetesListPage(gathered_chars=1)
    for at in range(0, len(content), size):
        yield from page.feed(content[at : at + size])
    yield from page.end()


def kept(content: bytes, size: int = 7) -> tuple[list[Raw], str]:
    """What came before it broke, and why it broke."""
    found: list[Raw] = []
    try:
        found.extend(read(content, size))
    except SourceResponseInvalid as error:
        return found, str(error)
    return found, ""


@pytest.mark.parametrize("size", [1, 13, 4_096, 1_000_000])
@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_every_captured_list_is_read_as_it_is(file: Path, size: int) -> None:
    whole = json.loads(file.read_text("utf-8"))
    page = KubernetesListPage()
    assert list(read(file.read_bytes(), size, page)) == (whole["items"] or [])
    assert (page.continue_token, page.kind) == (whole["metadata"].get("continue") or "", whole["kind"])


def written(order: str, *, indent: int | None = None, ascii_only: bool = False) -> bytes:
    parts: Raw = {"i": ("items", ITEMS), "m": ("metadata", {"continue": "a+b=="}), "n": ("odd", 12)}
    return json.dumps(dict(parts[each] for each in order), indent=indent, ensure_ascii=ascii_only).encode()


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("order", ["im", "mi", "nim", "inm", "imn"])
def test_where_chunks_are_cut_does_not_matter(order: str, indent: int | None, ascii_only: bool) -> None:
    content = written(order, indent=indent, ascii_only=ascii_only)
    for size in (1, 2, 3, 5, 64, len(content)):
        page = KubernetesListPage(gathered_chars=1)
        assert list(read(content, size, page)) == ITEMS
        assert page.continue_token == "a+b=="


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("indent", [None, 1])
def test_of_a_truncated_page_all_whole_items_are_kept_wherever_it_is_cut(indent: int | None, ascii_only: bool) -> None:
    """Facts 4: an error of the archive's database is a list that ends anywhere, with status 200."""
    content = written("im", indent=indent, ascii_only=ascii_only)
    counts = []
    for end in range(len(content) - 1):
        found, why = kept(content[:end], size=11)
        assert "cut off" in why or "UTF-8" in why, (end, why)
        assert found == ITEMS[: len(found)]
        counts.append(len(found))
    assert counts == sorted(counts)
    assert counts[-1] == len(ITEMS)


def test_what_came_is_handed_out_when_the_end_will_not_come() -> None:
    """Text is gathered before it is read; a connection that breaks must not lose what was gathered."""
    page = KubernetesListPage(gathered_chars=10**6)
    content = written("im")
    first = [*page.feed(content[:30]), *page.feed(content[30:-20])]
    assert [*first, *page.remaining_items()] == ITEMS
    assert list(page.remaining_items()) == []


@pytest.mark.parametrize(
    "content", [b'{"items":null,"metadata":{}}', b'{"metadata":null,"items":[ ]}', b'\n{"items":[]}\n']
)
def test_an_empty_list_may_be_written_in_many_ways(content: bytes) -> None:
    assert kept(content, 1) == ([], "")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"<html>",
        b"{}",
        b'{"kind":"Status","message":"no"}',
        b'{"items":{}}',
        b'{"items":3}',
        b'{"items":[{}',
        b'{"items":[nonsense which is not an object, {"an item": "that is never reached"}]}',
        b'{"items" []}',
        b'{"items":[{"a":"\xe2\x82',
        b'{"items":[{"a":' + b"[" * 100_000,
        b'{"items":[{"a":' + b'{"b":' * 100_000,
    ],
)
@pytest.mark.parametrize("size", [1, 1_000])
def test_what_is_no_list_ends_in_a_sentence(content: bytes, size: int) -> None:
    found, why = kept(content, size if len(content) < 10_000 else 50_000)
    assert found in ([], [{}])
    assert why.endswith(".")


@pytest.mark.parametrize(
    "bad",
    [
        b'{"a":b}',
        b'{"a" "b\\"}]},{"}',
        b'{"a":' + b"[" * 3_000 + b"]" * 3_000 + b"}",
        b'{"a":' + b'{"b":' * 3_000 + b"1" + b"}" * 3_001,
        b'{"a":' + b"9" * 5_000 + b"}",
        b'{"a":"' + b'\\\\\\"{' * 20_000 + b'"}',
        b'{"a":"\\ud83d\\u12","b":"long enough"}',
        b'"no object"',
        b"12",
        b"null",
        b'[{"a":1}]',
    ],
    ids=lambda bad: bad[:24].decode(),
)
@pytest.mark.parametrize("size", [also(1), 7, also(5_000), also(20_000)])
def test_an_item_that_cannot_be_read_does_not_take_the_others_along(bad: bytes, size: int) -> None:
    page = KubernetesListPage(gathered_chars=1, item_chars=50_000)
    content = b'{"items":[{"n":1},' + bad + b',{"n":2},' + bad + b',{"n":3}],"metadata":{"continue":"on"}}'
    if size == 1 and len(content) > 30_000:
        size = 3_001  # the same places are cut, in less time
    assert list(read(content, size, page)) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert (page.skipped, page.continue_token) == (2, "on")


def test_what_is_not_utf8_is_replaced_and_what_json_has_no_word_for_is_null() -> None:
    page = KubernetesListPage(gathered_chars=1)
    content = b'{"items":[{"a":"x\xffy"},{"b":[NaN,-Infinity]},{"a":1,"a":2}]}'
    assert list(read(content, 3, page)) == [{"a": "x\ufffdy"}, {"b": [None, None]}, {"a": 2}]
    assert page.skipped == 0


def test_an_item_that_does_not_end_is_not_held() -> None:
    page = KubernetesListPage(gathered_chars=100, item_chars=1_000)
    endless = b'{"items":[{"n":1},{"a":"' + b"x" * 100_000
    found: list[Raw] = []
    held = 0
    for at in range(0, len(endless), 100):
        found += page.feed(endless[at : at + 100])
        held = max(held, len(page._text) + sum(map(len, page._parts)))
    assert found == [{"n": 1}]
    assert held <= 1_000 + 2 * 100
    with pytest.raises(SourceResponseInvalid, match="cut off before its end"):
        list(page.end())


def test_a_key_that_does_not_end_is_given_up() -> None:
    with pytest.raises(SourceResponseInvalid, match="cannot be read on"):
        list(read(b'{"' + b"x" * 100_000, 100, KubernetesListPage(gathered_chars=100, item_chars=1_000)))


def test_one_item_is_held_at_a_time() -> None:
    """The next is read when it is asked for."""
    page = KubernetesListPage()
    items = page.feed(b'{"items":[{"n":1},{"n":2},nonsense and more of it, so that it is no cut]}')
    assert [next(items), next(items)] == [{"n": 1}, {"n": 2}]
    with pytest.raises(SourceResponseInvalid):
        next(items)
