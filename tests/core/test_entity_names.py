"""Names in a text: all shapes, in any script, in a time that grows with the text and no faster."""

import pytest

from hummingbird.agent.compaction import find_names
from tests.thoroughly import ALL


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see src/a.py:12, please", ["src/a.py:12"]),
        ("修正src/cache.py的错误,参见!41", ["src/cache.py", "!41"]),
        ("src/cache.py를 고쳐", ["src/cache.py"]),
        ("fixed by CVE-2024-12345.", ["CVE-2024-12345"]),
        ("glibc-2.38-4.fc40.x86_64 is old", ["glibc-2.38-4.fc40.x86_64"]),
        ("tests/t.py::TestA::test_b[1-x] in group/project!12", ["tests/t.py::TestA::test_b[1-x]", "group/project!12"]),
        ("`git rebase -i` as in https://h.org/a?b=c#d.", ["git rebase -i", "https://h.org/a?b=c#d"]),
        ("parseJson raised PartError, says a.b@example.org", ["parseJson", "PartError", "a.b@example.org"]),
        ("a well-known state of the art", []),
    ],
)
def test_what_a_person_would_look_for_again_is_a_name(text: str, found: list[str]) -> None:
    assert list(find_names(text)) == found


@pytest.mark.parametrize(
    "piece", ["+", "@", "-", "a-", "a.", "::", "_", "a/", "1.", "x@", "a@b.", "A_", "-1", "`a", "0a"]
)
def test_no_text_hangs_it(piece: str) -> None:
    """With 400,000 characters, work that grows with the square of the text does not end within the timeout."""
    text = piece * ((400_000 if ALL else 8_000) // len(piece))
    sum(1 for _ in find_names(text))
