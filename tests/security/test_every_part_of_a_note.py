"""Part by part: a draft has several places for others' words, and in none of them do they act.

What stands below an answer quotes names of jobs and lines of logs, so it is as hostile as what a model writes."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import hummingbird
from hummingbird.core.masking import Secrets
from hummingbird.gitlab.write.note_sanitizer import render_note
from hummingbird.gitlab.write.protocol import CollapsedSection, NoteDraft, NoteMarker, NoteMarkers
from tests.gitlab.write.hostile import ATTACKS, COMMANDS, MARKER
from tests.gitlab.write.note_judge import commands, effects

SECRET = "correct-horse-battery"
FOOTER = "*Model m, 3 iterations.*"
PARTS: dict[str, Callable[[str], NoteDraft]] = {
    "text": lambda words: _draft(text=words),
    "more": lambda words: _draft(text="The parser.", more=words),
    "more behind what is left open": lambda words: _draft(text="```\nopen", more=words),
    "fold": lambda words: _draft(text="The parser.", folds=(CollapsedSection("Log", words),)),
    "suggestion": lambda words: _draft(text="The parser.", suggestion=words),
}


def _draft(**parts: object) -> NoteDraft:
    return NoteDraft(**parts, below=FOOTER, marker=NoteMarker(id="s1", order="o1"))  # type: ignore[arg-type] # by name, above


@pytest.mark.parametrize("part", PARTS)
def test_no_part_of_a_draft_that_holds_others_words_acts(part: str) -> None:
    for words in (*COMMANDS, *ATTACKS, f'a <!-- {MARKER}: {{"id":"s2"}} --> b'):
        body = render_note(PARTS[part](words), NoteMarkers(MARKER), Secrets())
        shown = body.removeprefix(body.split("\n", 1)[0]).replace("suggestion:-0+0", "text")
        assert commands(body) == [], words
        assert effects(shown) == [], words
        assert body.count(f"<!-- {MARKER}") == 1, f"not even in code: {words}"
        assert body.endswith(f"\n\n---\n{FOOTER}"), f"our words stay ours: {words}"


@pytest.mark.parametrize("part", PARTS)
def test_no_part_of_a_draft_tells_a_secret(part: str) -> None:
    body = render_note(PARTS[part](f"It says {SECRET} here."), NoteMarkers(MARKER), Secrets([SECRET]))
    assert SECRET not in body
    assert "It says" in body


@pytest.mark.thorough
def test_titles_of_what_folds_out_are_our_own_words() -> None:
    """They are escaped as HTML and no more, so nobody else's words may stand there."""
    root = Path(hummingbird.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in root.rglob("*.py") if "cases" not in path.parts]
    trees = [ast.parse(text) for text in texts if "CollapsedSection(" in text or "def fold_answer" in text]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    titles = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "CollapsedSection"]
    assert titles
    own = [title for tree in trees for title in _titles_of_folded_answers(tree)]
    assert own
    given = [title for title in titles if not (isinstance(title, ast.Name) and title.id == "title")]
    assert all(_is_own_words(title) for title in [*given, *own])


def _titles_of_folded_answers(tree: ast.Module) -> list[ast.expr]:
    """What `fold_answer` may return as a title: the first of each pair."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "fold_answer"]
    returned = [node.value for one in functions for node in ast.walk(one) if isinstance(node, ast.Return)]
    parts = [part for value in returned if value for part in _alternatives(value)]
    assert all(isinstance(part, ast.Tuple) for part in parts)
    return [part.elts[0] for part in parts if isinstance(part, ast.Tuple)]


def _alternatives(value: ast.expr) -> list[ast.expr]:
    return [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]


def _is_own_words(title: ast.expr) -> bool:
    """A text of the source, with numbers at most."""
    if not isinstance(title, ast.JoinedStr):
        return isinstance(title, ast.Constant)
    shown = [part.value for part in title.values if isinstance(part, ast.FormattedValue)]
    return all(isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "len" for one in shown)
