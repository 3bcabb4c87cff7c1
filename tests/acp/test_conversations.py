"""Conversations of an editor with the real process, by the protocol's own library."""

import asyncio
import threading
from typing import Any

import pytest
from acp.exceptions import RequestError
from acp.helpers import embedded_text_resource, resource_block, resource_link_block
from acp.schema import ImageContentBlock, McpServerStdio

from tests.acp.editor import MODEL, Desk, gone, soon, written
from tests.standins.vendors.script import Call, Fault, Turn
from tests.standins.vendors.server import VendorLab

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATIENCE_S = 60.0
ANSWER = "The needle is **here**, and this answer is long enough to come in pieces."


def edit(path: str, **more: str) -> Turn:
    return Turn(calls=(Call("file_edit", {"path": path, **more}),))


def asked_of_model(lab: VendorLab) -> str:
    """The last request, as text."""
    return str(lab.requests[-1].body)


async def test_an_answer_streams_into_the_editor_once_with_thoughts_and_cost(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(Turn(text=ANSWER, thinking="where could it be"))
    session = await desk.new()
    assert await desk.say(session.session_id, "find the needle") == "end_turn"
    editor = desk.editor
    assert editor.text() == ANSWER
    assert editor.text("agent_thought_chunk") == "where could it be"
    assert editor.of("usage_update")[-1].used > 0
    assert editor.of("session_info_update")[0].title == "find the needle"
    assert {"compress", "model", "steer", "undo"} <= {
        one.name for one in editor.of("available_commands_update")[0].available_commands
    }


async def test_an_edit_is_asked_about_whole_and_shown_as_a_diff(desk: Desk, lab: VendorLab) -> None:
    place = desk.workspace / "wing.txt"
    place.write_text("left\n")
    long = "right " * 2_000
    lab.script.extend(
        Turn(calls=(Call("file_read", {"path": "wing.txt"}),)), edit("wing.txt", new=long), Turn(text="!")
    )
    desk.editor.choose = lambda call: "once"
    session = await desk.new()
    assert await desk.say(session.session_id, "the other one") == "end_turn"
    assert place.read_text() == long
    (whose, question, options), call = desk.editor.questions[0], desk.editor.of("tool_call")[1]
    assert (whose, question.tool_call_id) == (session.session_id, call.tool_call_id)
    assert question.title == f'file_edit {{"new":"{long}","path":"wing.txt"}}'
    assert question.title in question.content[0].content.text
    assert [one.kind for one in options] == ["allow_once", "allow_always", "allow_always", "reject_once"]
    assert (call.kind, call.locations[0].path) == ("edit", str(place))
    told = [status for call_id, status in desk.editor.statuses() if call_id == call.tool_call_id]
    assert told == ["pending", "in_progress", "completed"]
    assert desk.editor.of("tool_call")[0].kind == "read"
    shown = desk.editor.of("tool_call_update")[-1].content[0]
    assert (shown.type, shown.old_text, shown.new_text) == ("diff", "left\n", long)


@pytest.mark.parametrize("answer", ["reject", "", "no such option"])
async def test_what_is_not_allowed_does_not_happen(desk: Desk, lab: VendorLab, answer: str) -> None:
    lab.script.extend(edit("never.txt", new="x"), Turn(text="then not"))
    desk.editor.choose = lambda call: answer
    session = await desk.new()
    assert await desk.say(session.session_id, "write it") == "end_turn"
    assert not (desk.workspace / "never.txt").exists()
    assert desk.editor.statuses()[-1][1] == "failed"
    assert "Denied by the person at the editor" in asked_of_model(lab)


async def test_a_yes_for_the_session_is_not_asked_for_again(desk: Desk, lab: VendorLab) -> None:
    command = Turn(calls=(Call("terminal", {"command": "echo beat >> beats.txt"}),))
    lab.script.extend(command, command, Turn(text="twice"))
    desk.editor.choose = lambda call: "session"
    session = await desk.new()
    await desk.say(session.session_id, "beat twice")
    assert (desk.workspace / "beats.txt").read_text() == "beat\nbeat\n"
    assert len(desk.editor.questions) == 1
    assert desk.editor.of("tool_call")[0].kind == "execute"


async def test_a_model_call_is_cancelled_at_once_and_what_had_come_was_shown(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(Fault("stall", after=6, turn=Turn(text=ANSWER)), Turn(text="here again"))
    session = await desk.new()
    run = asyncio.create_task(desk.say(session.session_id, "take your time"))
    waiting = asyncio.create_task(desk.say(session.session_id, "and then this"))
    await desk.editor.until(lambda editor: editor.text())
    assert ANSWER.startswith(desk.editor.text())
    await desk.connection.cancel(session_id=session.session_id)
    async with asyncio.timeout(PATIENCE_S):
        assert await run == "cancelled"
        assert await waiting == "cancelled"
    assert await desk.say(session.session_id, "are you there") == "end_turn"
    assert "and then this" not in asked_of_model(lab)


async def test_a_running_command_is_cancelled_with_its_processes(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(Turn(calls=(Call("terminal", {"command": "sleep 987 & echo $! > pid; wait"}),)))
    desk.editor.choose = lambda call: "once"
    session = await desk.new()
    run = asyncio.create_task(desk.say(session.session_id, "sleep"))
    pid = await written(desk.workspace / "pid")
    await desk.connection.cancel(session_id=session.session_id)
    async with asyncio.timeout(PATIENCE_S):
        assert await run == "cancelled"
    await gone(pid, PATIENCE_S)
    assert desk.editor.statuses()[-1][1] == "failed"


async def test_a_question_that_is_open_is_cancelled_too(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(edit("never.txt", new="x"))
    desk.editor.choose = lambda call: "wait"
    session = await desk.new()
    run = asyncio.create_task(desk.say(session.session_id, "write it"))
    await desk.editor.until(lambda editor: editor.questions)
    await desk.connection.cancel(session_id=session.session_id)
    async with asyncio.timeout(PATIENCE_S):
        assert await run == "cancelled"
    assert not (desk.workspace / "never.txt").exists()


async def test_a_cancel_right_behind_its_message_is_heard(desk: Desk, lab: VendorLab) -> None:
    session = await desk.new()
    run = asyncio.create_task(desk.say(session.session_id, "never mind"))
    await asyncio.sleep(0)
    await desk.connection.cancel(session_id=session.session_id)
    async with asyncio.timeout(PATIENCE_S):
        assert await run == "cancelled"


@pytest.mark.parametrize("at_once", [True, False])
async def test_plan_mode_refuses_what_writes(desk: Desk, lab: VendorLab, at_once: bool) -> None:
    """Whether something was said before or not; the session stays the same."""
    desk.editor.choose = lambda call: "always"
    session = await desk.new()
    if not at_once:
        lab.script.extend(Turn(text="hello"))
        await desk.say(session.session_id, "hi")
    lab.script.extend(edit("planned.txt", new="x"), Turn(text="as planned"))
    await desk.connection.set_session_mode(session_id=session.session_id, mode_id="plan")
    assert await desk.say(session.session_id, "write it") == "end_turn"
    assert not (desk.workspace / "planned.txt").exists()
    assert desk.editor.questions == []
    assert desk.editor.of("current_mode_update")[-1].current_mode_id == "plan"
    lab.script.extend(edit("planned.txt", new="x"), Turn(text="written"))
    await desk.connection.set_config_option(config_id="mode", session_id=session.session_id, value="ask")
    assert await desk.say(session.session_id, "now do") == "end_turn"
    assert (desk.workspace / "planned.txt").read_text() == "x"
    assert "write it" in asked_of_model(lab)
    (desk.workspace / "planned.txt").unlink()
    listed = await desk.connection.list_sessions(cwd=str(desk.workspace))
    assert session.session_id in {one.session_id for one in listed.sessions}


async def test_a_change_to_plan_mode_ends_a_run_whose_calls_were_allowed_before(desk: Desk, lab: VendorLab) -> None:
    command = Turn(calls=(Call("terminal", {"command": "echo flap >> flaps.txt"}),))
    lab.script.extend(command, Fault("stall", turn=command))
    desk.editor.choose = lambda call: "session"
    session, before = await desk.new(), len(lab.requests)
    run = asyncio.create_task(desk.say(session.session_id, "flap twice"))
    await soon(lambda: len(lab.requests) == before + 2, PATIENCE_S)
    await desk.connection.set_session_mode(session_id=session.session_id, mode_id="plan")
    assert await asyncio.wait_for(run, PATIENCE_S) == "cancelled"
    assert "the run is interrupted" in desk.editor.text("agent_thought_chunk")
    assert (desk.workspace / "flaps.txt").read_text() == "flap\n"
    lab.script.extend(command, Turn(text="as planned"))
    assert await desk.say(session.session_id, "and now") == "end_turn"
    assert (desk.workspace / "flaps.txt").read_text() == "flap\n"


async def test_two_conversations_go_on_at_once(desk: Desk, lab: VendorLab) -> None:
    first, second = await desk.new(), await desk.new()

    def step(request: dict[str, Any]) -> Turn | Fault:
        return Fault("stall") if "say it never" in str(request) else Turn(text="quick answer")

    lab.script.extend(step, step)
    before = len(lab.requests)
    never = asyncio.create_task(desk.say(first.session_id, "say it never"))
    await soon(lambda: len(lab.requests) > before, PATIENCE_S)
    assert await desk.say(second.session_id, "say it quickly") == "end_turn"
    assert not never.done()
    await desk.connection.cancel(session_id=first.session_id)
    assert await never == "cancelled"
    assert "quick answer" not in desk.editor.text(session_id=first.session_id)
    assert desk.editor.text(session_id=second.session_id) == "quick answer"


async def test_a_message_during_a_run_waits_for_it(desk: Desk, lab: VendorLab) -> None:
    both_sent = threading.Event()
    lab.script.extend(Fault("slow", until=both_sent, turn=Turn(text="one ")), Turn(text="two"))
    session, before = await desk.new(), len(lab.requests)
    runs = [asyncio.create_task(desk.say(session.session_id, text)) for text in ("first", "second")]
    await soon(lambda: len(lab.requests) > before, PATIENCE_S)
    both_sent.set()
    assert await asyncio.gather(*runs) == ["end_turn", "end_turn"]
    assert desk.editor.text() == "one two"
    assert "first" in asked_of_model(lab)


async def test_steering_does_not_wait(desk: Desk, lab: VendorLab) -> None:
    steered = threading.Event()
    search = Turn(calls=(Call("file_search", {"glob": "*.none"}),))
    lab.script.extend(Fault("slow", until=steered, turn=search), Turn(text="turned"))
    session = await desk.new()
    before = len(lab.requests)
    run = asyncio.create_task(desk.say(session.session_id, "go"))
    await soon(lambda: len(lab.requests) > before, PATIENCE_S)
    assert await desk.say(session.session_id, "/steer left instead") == "end_turn"
    assert not run.done()
    steered.set()
    assert await run == "end_turn"
    assert "left instead" in asked_of_model(lab)
    assert desk.editor.text("user_message_chunk") == "left instead"


async def test_the_list_is_a_plan(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(
        Turn(calls=(Call("todo", {"action": "create", "texts": ["look", "fix", "drop"]}),)),
        Turn(calls=(Call("todo", {"action": "complete", "numbers": [1]}),)),
        Turn(calls=(Call("todo", {"action": "cancel", "numbers": [3]}),)),
        Turn(text="listed"),
    )
    session = await desk.new()
    await desk.say(session.session_id, "plan it")
    plans = [[(one.content, one.status) for one in plan.entries] for plan in desk.editor.of("plan")]
    assert plans[0] == [("look", "pending"), ("fix", "pending"), ("drop", "pending")]
    assert plans[-1] == [("look", "completed"), ("fix", "pending")]


async def test_a_question_becomes_a_form_where_the_editor_has_them(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(
        Turn(calls=(Call("clarify", {"question": "Which wing?", "choices": ["left", "right"]}),)), Turn(text="ok")
    )
    desk.editor.form = {"choice": "left", "words": "gently"}
    session = await desk.new()
    await desk.say(session.session_id, "flap")
    message, mode = desk.editor.questions[0]
    assert message == "Which wing?"
    assert mode.requested_schema.properties["choice"].enum == ["left", "right"]
    assert "The user answers: left. gently" in asked_of_model(lab)


async def test_links_and_files_that_come_along_are_one_message(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(Turn(text="read"))
    session = await desk.new()
    link = resource_link_block("nest.py", (desk.workspace / "src" / "nest.py").as_uri())
    along = resource_block(embedded_text_resource((desk.workspace / "egg.py").as_uri(), "EGG = 1\n"))
    assert await desk.say(session.session_id, "Compare ", link, " with ", along) == "end_turn"
    said = asked_of_model(lab)
    assert "`src/nest.py`" in said
    assert "The file egg.py:" in said
    assert "EGG = 1" in said


async def test_pasted_megabytes_are_put_away_or_refused_with_a_sentence(desk: Desk, lab: VendorLab) -> None:
    session = await desk.new()
    lab.script.extend(Turn(text="long"))
    assert await desk.say(session.session_id, "look: " + "x" * 2_000_000) == "end_turn"
    said = asked_of_model(lab)
    assert "2,000,006 characters, all of them in the file" in said
    assert len(said) < 100_000


async def test_commands_are_done_and_not_said(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(Turn(text="one"), Turn(text="once more"))
    session = await desk.new()
    await desk.say(session.session_id, "say it")
    desk.editor.updates.clear()
    assert await desk.say(session.session_id, "/cost") == "end_turn"
    assert "1 model call" in desk.editor.text()
    assert await desk.say(session.session_id, "/retry") == "end_turn"
    assert desk.editor.text().endswith("once more")
    assert await desk.say(session.session_id, "/undo") == "end_turn"
    assert "say it" in desk.editor.text()
    with pytest.raises(RequestError, match="Did you mean /cost"):
        await desk.say(session.session_id, "/cast")
    with pytest.raises(RequestError, match="/quit is for the terminal"):
        await desk.say(session.session_id, "/quit")


async def test_the_model_is_an_option_and_a_command(desk: Desk, lab: VendorLab) -> None:
    session = await desk.new()
    assert [one.id for one in session.config_options or ()] == ["mode", "model"]
    await desk.say(session.session_id, "/model openai:gpt-6.1-luna")
    changed = desk.editor.of("config_option_update")[-1].config_options[1]
    assert changed.current_value == "openai:gpt-6.1-luna"
    done = await desk.connection.set_config_option(config_id="model", session_id=session.session_id, value=MODEL)
    assert done is not None
    assert done.config_options[1].current_value == MODEL
    lab.script.extend(Turn(text="as before"))
    await desk.say(session.session_id, "hi")
    assert lab.requests[-1].body["model"] == "gpt-6.1-terra"
    with pytest.raises(RequestError, match="set ANTHROPIC_API_KEY"):
        await desk.say(session.session_id, "/model anthropic:claude-sonnet-5")


async def test_servers_of_the_editor_are_not_taken_silently(desk: Desk) -> None:
    server = McpServerStdio(name="clock", command="/bin/true", args=[], env=[])
    session = await desk.connection.new_session(cwd=str(desk.workspace), mcp_servers=[server])
    assert "clock" in str(session.field_meta)
    await desk.editor.until(lambda editor: "chat.mcp_servers" in editor.text("agent_thought_chunk"))


async def test_a_model_that_fails_is_an_error_with_a_sentence(desk: Desk, lab: VendorLab) -> None:
    lab.script.extend(Fault("status", status=401, message="no such key"))
    session = await desk.new()
    with pytest.raises(RequestError, match=r"key|credential|401") as failure:
        await desk.say(session.session_id, "hi")
    assert failure.value.code == -32603
    assert "k-123456789" not in str(failure.value)


async def test_bad_requests_get_a_sentence_each_and_the_process_goes_on(desk: Desk) -> None:
    new, session = desk.connection.new_session, await desk.new()
    image, codes = ImageContentBlock(type="image", data="AA==", mime_type="image/png"), list[int]()
    for attempt, sentence in [
        (new(cwd="relative/path", mcp_servers=[]), "has to be an absolute path"),
        (new(cwd=str(desk.workspace / "nowhere"), mcp_servers=[]), "There is no folder"),
        (desk.say("unknown", "hi"), "No session unknown is open here"),
        (desk.connection.load_session(cwd=str(desk.workspace), session_id="f" * 32, mcp_servers=[]), "no session"),
        (desk.connection.load_session(cwd=str(desk.workspace), session_id="../etc", mcp_servers=[]), "not usable"),
        (desk.connection.set_session_mode(session_id=session.session_id, mode_id="yolo"), "There is no mode 'yolo'"),
        (desk.connection.list_sessions(cursor="zzz"), "cursor"),
        (desk.connection.authenticate(method_id="x"), "nothing to sign in to"),
        (desk.say(session.session_id, image), "Images and sound"),
        (desk.say(session.session_id, "   "), "The message is empty"),
    ]:
        with pytest.raises(RequestError, match=sentence) as failure:
            await attempt
        codes.append(failure.value.code)
    assert codes[2:5] == [-32002] * 3, "the protocol's code for a session that there is not"
    assert codes[:2] == [-32602] * 2
    assert desk.process.returncode is None


async def test_a_conversation_can_be_closed(desk: Desk) -> None:
    session = await desk.new()
    await desk.connection.close_session(session_id=session.session_id)
    with pytest.raises(RequestError, match="is open here"):
        await desk.say(session.session_id, "hi")


async def test_another_version_is_answered_with_ours(desk: Desk) -> None:
    hello = await desk.connection.initialize(7)
    assert hello.protocol_version == 1
    able = desk.hello.agent_capabilities
    assert able is not None
    assert able.load_session
    assert able.prompt_capabilities is not None
    assert (able.prompt_capabilities.embedded_context, able.prompt_capabilities.image) == (True, False)
    assert not desk.hello.auth_methods
