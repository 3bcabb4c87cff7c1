"""The list of what is to be done, as a fold over the journal."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.todo_list import TODO_CHARS, TODOS, TODOS_SHOWN_CHARS, Todo, TodoList, TodoState
from hummingbird.core.errors import ArgumentsInvalid
from hummingbird.core.journal import (
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage

ANSWER = ModelAnswered(call_id="m", model="m", message=AssistantMessage(""))


def create(*texts: str) -> dict[str, Any]:
    return {"action": "create", "texts": list(texts)}


def called(
    arguments: dict[str, Any] | str, call_id: str = "1", outcome: ToolOutcome = ToolOutcome.OK, name: str = "todo"
) -> list[JournalEntry]:
    sent = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return [
        ToolStarted(call_id=call_id, name=name, arguments=sent),
        ToolFinished(call_id=call_id, name=name, text="…", outcome=outcome),
    ]


def states(todos: TodoList) -> list[tuple[int, str, str]]:
    return [(item.number, item.text, item.state.value) for item in todos.all]


def test_what_the_model_does_with_the_list_is_there_afterwards_in_any_process() -> None:
    entries = [
        *called(create("read the log", "fix  it\n", "run it")),
        *called({"action": "update", "numbers": [2], "state": "in_progress", "text": "fix the parser"}, "2"),
        *called({"action": "complete", "numbers": [1]}, "3"),
        *called({"action": "cancel", "numbers": [3]}, "4"),
    ]
    todos = TodoList.from_entries(entries)
    assert states(todos) == [
        (1, "read the log", "completed"),
        (2, "fix the parser", "in_progress"),
        (3, "run it", "cancelled"),
    ]
    assert todos.open == (Todo(2, "fix the parser", TodoState.IN_PROGRESS),)
    assert todos.progress_line == "1 of 2 done; now: fix the parser"


@pytest.mark.parametrize("outcome", [one for one in ToolOutcome if one is not ToolOutcome.OK])
def test_a_call_that_did_not_succeed_changes_nothing(outcome: ToolOutcome) -> None:
    assert TodoList.from_entries(called(create("a"), outcome=outcome)).all == ()


def test_a_call_without_an_end_changes_nothing_and_hides_no_later_one() -> None:
    """The process died between the two, and the model did the same again."""
    started = called(create("a"))[0]
    assert states(TodoList.from_entries([started, ANSWER, *called(create("a"), "2")])) == [(1, "a", "pending")]


def test_identical_calls_of_one_answer_count_once_for_they_ran_once() -> None:
    """Also when the model wrote the same JSON in two ways."""
    first, second = called(create("a")), called('{ "texts": ["a"],"action":"create" }', "2")
    assert states(TodoList.from_entries([first[0], second[0], first[1], second[1]])) == [(1, "a", "pending")]
    assert len(TodoList.from_entries([*first, *second]).all) == 2  # one after the other they are two


def test_arguments_that_a_hook_rewrote_count_as_it_wrote_them() -> None:
    said = 'arguments {"action":"create","texts":["b"]}'
    decided = ToolDecided(call_id="1", name="todo", by="hook", decision="rewritten", reason=said)
    assert states(TodoList.from_entries([decided, *called(create("a"))])) == [(1, "b", "pending")]


def test_a_name_that_the_toolbox_understands_is_understood_here_too() -> None:
    assert len(TodoList.from_entries(called(create("a"), name="To-Do")).all) == 1
    assert TodoList.from_entries(called(create("a"), name="todos")).all == ()


def test_a_turn_that_was_taken_back_takes_its_part_of_the_list_with_it() -> None:
    """Numbers are not given twice."""
    entries = [
        UserSaid(text="one"),
        *called(create("a")),
        UserSaid(text="two"),
        *called(create("b"), "2"),
        UserSaid(text="skill", source=MessageSource.SKILL),
        *called({"action": "complete", "numbers": [1]}, "3"),
        TurnUndone(text="two"),
    ]
    assert states(TodoList.from_entries(entries)) == [(1, "a", "pending")]
    assert states(TodoList.from_entries([*entries, *called(create("c"), "4")])) == [
        (1, "a", "pending"),
        (3, "c", "pending"),
    ]
    assert TodoList.from_entries([*entries, TurnUndone(text="one")]).all == ()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "no such action"),
        ({"action": ["create"]}, "no such action"),
        ({"action": "create"}, "needs `texts`"),
        ({"action": "create", "texts": []}, "needs `texts`"),
        ({"action": "create", "texts": ["a", 1]}, "needs `texts`"),
        ({"action": "create", "texts": ["a", " "]}, "1 to 500"),
        ({"action": "create", "texts": ["x" * (TODO_CHARS + 1)]}, "has 501"),
        ({"action": "create", "texts": ["x"] * TODOS}, "room for 255 more"),
        ({"action": "complete", "numbers": [1, 7]}, r"no item 7. Open ones: 1"),
        ({"action": "complete", "numbers": [True]}, "needs `numbers`"),
        ({"action": "update", "numbers": [1]}, "its text, its state or both"),
        ({"action": "update", "numbers": [1], "state": "done"}, "A state is one of pending"),
        ({"action": "update", "numbers": [1], "state": {}}, "A state is one of pending"),
        ({"action": "update", "numbers": [1, 1], "text": "b"}, "for one item"),
    ],
)
def test_what_makes_no_sense_is_said_and_nothing_changes(arguments: dict[str, Any], sentence: str) -> None:
    todos = TodoList()
    todos.apply_action(create("a"))
    with pytest.raises(ArgumentsInvalid, match=sentence):
        todos.apply_action(arguments)
    assert states(todos) == [(1, "a", "pending")]
    assert states(TodoList.from_entries([*called(create("a")), *called(arguments, "2")])) == states(todos)


@pytest.mark.parametrize("sent", ["", "nonsense", "[]", "{" * 10_000, '{"action":"create","texts":"a"}', "\ud800"])
def test_arguments_of_any_kind_in_a_journal_are_survived(sent: str) -> None:
    """Journals of other versions are opened too."""
    assert TodoList.from_entries(called(sent)).all == ()


def test_when_there_are_too_many_those_that_ended_first_are_forgotten() -> None:
    """A long session is never without room for what is open."""
    todos = TodoList()
    for _ in range(5):
        todos.apply_action(create(*["x"] * 100))
        todos.apply_action({"action": "complete", "numbers": [item.number for item in todos.open]})
    assert [item.number for item in todos.all] == list(range(245, 501))
    todos.apply_action(create(*["y"] * TODOS))
    assert len(todos.open) == TODOS
    todos.apply_action({"action": "complete", "numbers": [501]})
    todos.apply_action(create("z"))
    with pytest.raises(ArgumentsInvalid, match="no item 501"):
        todos.apply_action({"action": "update", "numbers": [501], "state": "pending"})


def test_a_long_list_is_shown_in_few_characters_with_what_is_open_and_what_is_missing() -> None:
    todos = TodoList()
    shown = todos.apply_action(create(*(f"{n} " + "word " * 90 for n in range(8))))
    assert shown.splitlines()[1].startswith("1 pending: 0 word")
    assert len(shown) <= TODOS_SHOWN_CHARS
    shown = todos.apply_action(create("last " * 90, "and one"))
    assert len(shown) <= TODOS_SHOWN_CHARS
    assert "10 pending: and one" in shown
    shown = todos.apply_action({"action": "complete", "numbers": [1, 2]})
    assert shown.startswith("8 pending, 2 completed.\n[2 that ended are not shown]\n3 pending")
    todos.apply_action(create(*["many " * 50] * 200))
    shown = todos.apply_action({"action": "update", "numbers": [200], "state": "in_progress"})
    assert len(shown) <= TODOS_SHOWN_CHARS
    assert shown.splitlines()[1].startswith("200 in_progress")
    assert shown.splitlines()[-1].endswith("further open ones are not shown]")


numbers = st.lists(st.integers(0, 8), min_size=1, max_size=3)
actions = st.one_of(
    st.fixed_dictionaries({"action": st.just("create"), "texts": st.lists(st.text(max_size=4), max_size=3)}),
    st.fixed_dictionaries({"action": st.sampled_from(["complete", "cancel", "list", "?"]), "numbers": numbers}),
    st.fixed_dictionaries(
        {"action": st.just("update"), "numbers": numbers},
        optional={"state": st.sampled_from([*TodoState, "?"]), "text": st.text(max_size=4)},
    ),
)


@given(st.lists(st.tuples(actions, st.sampled_from(ToolOutcome)), max_size=12), st.data())
def test_calls_that_began_in_any_order_count_in_the_order_in_which_they_ended(
    calls: list[tuple[dict[str, Any], ToolOutcome]], draw: st.DataObject
) -> None:
    """Against a list that is kept by hand."""
    by_hand: dict[int, tuple[str, str]] = {}
    given_out = 0
    order = draw.draw(st.permutations(range(len(calls))))
    # calls of one answer differ, or they would be one call
    started = [called(arguments | {"n": n}, str(n))[0] for n, (arguments, _) in enumerate(calls)]
    finished = [called("", str(n), calls[n][1])[1] for n in order]
    for arguments, outcome in (calls[n] for n in order):
        if outcome is not ToolOutcome.OK:
            continue
        action, named = arguments["action"], arguments.get("numbers", [])
        texts = [" ".join(text.split()) for text in arguments.get("texts", [])]
        state, text = arguments.get("state"), arguments.get("text")
        if action == "create" and texts and all(texts):
            by_hand |= {given_out + n: (text, "pending") for n, text in enumerate(texts, 1)}
            given_out += len(texts)
        elif action in {"complete", "cancel"} and set(named) <= set(by_hand):
            by_hand |= {n: (by_hand[n][0], "completed" if action == "complete" else "cancelled") for n in named}
        elif action == "update" and set(named) <= set(by_hand) and state != "?":
            if (text is None and state is None) or (text is not None and (len(named) > 1 or not text.split())):
                continue
            by_hand |= {
                n: (by_hand[n][0] if text is None else " ".join(text.split()), state or by_hand[n][1]) for n in named
            }
    todos = TodoList.from_entries([*started, *finished])
    assert states(todos) == [(n, *fields) for n, fields in by_hand.items()]
