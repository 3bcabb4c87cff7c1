"""The list of what is to be done, as a tool in a run."""

import json
from typing import Any

from hummingbird.agent.todo_list import TodoList
from hummingbird.agent.tools.chat_tools import TodoTool
from hummingbird.core.journal import ToolFinished, ToolOutcome
from hummingbird.core.protocols.tools import DenyCall, RewriteCall
from hummingbird.storage.journals import MemoryJournal
from tests.agent.minds import Listener
from tests.agent.stage import Stage, stage
from tests.agent.test_hooks import Hook
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

CREATE = '{"action":"create","texts":["read","fix"]}'


async def ran(*turns: Any, **setup: Any) -> tuple[Stage, TodoTool]:
    journal = MemoryJournal()
    todo = TodoTool(journal.entries)
    on = stage(ScriptedModel([*turns, text_reply("done")]), tools=[todo], journal=journal, **setup)
    await on.run()
    return on, todo


async def test_the_model_works_through_its_list_and_a_new_process_finds_it_again() -> None:
    """The result is the list."""
    on, todo = await ran(
        tool_call_reply(("todo", CREATE)),
        tool_call_reply(("todo", '{"action":"update","numbers":[1],"state":"in_progress"}')),
        tool_call_reply(("todo", '{"action":"complete","numbers":[1]}')),
        tool_call_reply(("todo", '{"action":"complete","numbers":[9]}')),
    )
    texts = [entry.text for entry in on.written(ToolFinished)]
    assert texts[0] == "2 pending.\n1 pending: read\n2 pending: fix"
    assert texts[2] == "1 pending, 1 completed.\n1 completed: read\n2 pending: fix"
    assert texts[3] == "todo failed: There is no item 9. Open ones: 2."
    again = TodoTool(on.journal.entries)
    assert again.todos.all == todo.todos.all == TodoList.from_entries(on.journal.entries()).all
    assert [item.number for item in again.todos.open] == [2]


async def test_calls_of_one_answer_count_in_their_order_and_twins_once() -> None:
    """What the model reads and what the journal says are the same list."""
    more = '{"action":"create","texts":["run"]}'
    on, todo = await ran(
        tool_call_reply(("todo", CREATE), ("todo", more), ("todo", '{"texts":["run"], "action":"create"}'))
    )
    assert [(item.number, item.text) for item in todo.todos.all] == [(1, "read"), (2, "fix"), (3, "run")]
    assert [entry.text.count("\n") for entry in on.written(ToolFinished)] == [2, 3, 3]


async def test_hooks_that_rewrite_or_deny_are_heard() -> None:
    """Through the loop, for what a rewritten call looks like in the journal is decided there."""
    rewriting = Hook(before=RewriteCall(json.loads(CREATE)))
    on, todo = await ran(tool_call_reply(("todo", '{"action":"create","texts":["other"]}')), hooks=[rewriting])
    assert [item.text for item in todo.todos.all] == ["read", "fix"]
    assert on.written(ToolFinished)[0].text.endswith("2 pending: fix")
    for hook in (Hook(before=DenyCall("no")), Hook(after=RuntimeError("broken"))):
        on, todo = await ran(
            tool_call_reply(("todo", CREATE)), tool_call_reply(("todo", '{"action":"list"}')), hooks=[hook]
        )
        assert on.written(ToolFinished)[0].outcome is ToolOutcome.DENIED
        assert todo.todos.all == ()


async def test_the_count_is_shown_while_the_list_changes() -> None:
    listener = Listener()
    await listener.call(TodoTool(MemoryJournal().entries), json.loads(CREATE))
    assert listener.shown == ["0 of 2 done"]
