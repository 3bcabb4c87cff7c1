"""The comparison of answers itself: it must be able to fail."""

import pytest

from tests.lab.structure import lacks, paths

CAPTURED = {"id": 1, "when": None, "author": {"name": "a"}, "notes": [{"id": 1}, {"id": 2, "line": 3.5, "by": None}]}


def test_more_keys_are_welcome() -> None:
    ours = {**CAPTURED, "extra": [], "author": {"name": "b", "id": 4}}
    assert lacks(ours, CAPTURED) == []


@pytest.mark.parametrize(
    ("ours", "wrong"),
    [
        ({"when": None, "author": {"name": "a"}, "notes": CAPTURED["notes"]}, "id is missing"),
        ({**CAPTURED, "author": {}}, "author.name is missing"),
        ({**CAPTURED, "author": None}, "author is null, captured as object"),
        ({**CAPTURED, "author": "a"}, "author is string, captured as object"),
        ({**CAPTURED, "id": None}, "id is null, captured as number"),
        ({**CAPTURED, "id": True}, "id is boolean, captured as number"),
        ({**CAPTURED, "notes": [{"id": 1, "line": 2}]}, "notes[].by is missing"),
        ({**CAPTURED, "notes": [{"id": "1", "line": 2, "by": 1}]}, "notes[].id is string, captured as number"),
        ({**CAPTURED, "notes": []}, "notes[] has no item to compare"),
        ({**CAPTURED, "notes": {}}, "notes is object, captured as list"),
        ([], "it is list, captured as object"),
    ],
)
def test_what_is_missing_or_of_another_type_is_told(ours: object, wrong: str) -> None:
    assert lacks(ours, CAPTURED) == [wrong]


def test_items_of_a_list_are_taken_together() -> None:
    assert lacks([{"a": 1}, {"b": None}], [{"a": 1, "b": None}]) == []
    assert lacks([{"a": 1}, {"a": None}], [{"a": 1}]) == ["[].a is null, captured as number"]
    assert lacks([{"a": None}], [{"a": 1}, {"a": None}]) == []


def test_a_value_that_was_null_may_be_anything() -> None:
    assert lacks({"when": "now"}, {"when": None}) == []


def test_what_is_documented_may_be_null_or_absent() -> None:
    assert lacks({"a": {"b": None}}, {"a": {"b": 1, "c": 2}}, nullable={"a.b"}, absent={"a.c"}) == []
    assert lacks({"a": None}, {"a": {"b": 1}}, nullable={"a"}) == []


def test_paths_are_spelled_as_the_exceptions_are() -> None:
    assert paths(CAPTURED) == {
        "id",
        "when",
        "author",
        "author.name",
        "notes",
        "notes[].id",
        "notes[].line",
        "notes[].by",
    }
