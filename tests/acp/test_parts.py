"""The parts behind an editor's conversations, each for itself."""

import asyncio
import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from acp.helpers import embedded_blob_resource, embedded_text_resource, resource_block, resource_link_block, text_block
from click.testing import CliRunner

from hummingbird.acp.prompts import compose_prompt
from hummingbird.acp.server import SessionFolders
from hummingbird.acp.session import _stop_reason
from hummingbird.acp.stdio_transport import FrameSplitter
from hummingbird.acp.updates import (
    RESULT_CHARS,
    EditorUpdate,
    SessionUpdates,
    UpdateQueue,
    message_chunk,
    replay_entries,
    tool_kind,
)
from hummingbird.cli.acp import acp
from hummingbird.core.errors import UsageError
from hummingbird.core.events import (
    EntryRecorded,
    ReasoningDelta,
    RunEvent,
    RunOutcome,
    StatusMessage,
    TextDelta,
    ToolProgress,
)
from hummingbird.core.journal import (
    EndReason,
    MessageSource,
    ModelAnswered,
    ModelFailed,
    ModelFailureKind,
    RunEnded,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage, ToolCall
from hummingbird.core.permissions import GrantScope, PermissionQuestion, ProposedCall
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from tests.chat.scripted_partner import BILL


def account(folder: Path, *, live: bool = True) -> SessionUpdates:
    return SessionUpdates(folder, lambda name: "", lambda text: text.replace("hunter2", "[masked]"), live)


def told(made: SessionUpdates, *events: RunEvent) -> list[EditorUpdate]:
    return [update for event in events for update in made.from_event(event)]


def words(updates: Sequence[Any], kind: str = "agent_message_chunk") -> str:
    return "".join(one.content.text for one in updates if one.session_update == kind)


def answer(text: str, *calls: ToolCall, **more: Any) -> EntryRecorded:
    message = AssistantMessage(text, more.pop("reasoning", ""), calls)
    return EntryRecorded(ModelAnswered(call_id="m", model="a:b", message=message, **more))


def test_what_streamed_is_not_said_again(tmp_path: Path) -> None:
    whole = "all of it"
    assert words(told(account(tmp_path), answer(whole))) == whole
    assert words(told(account(tmp_path), TextDelta("all "), answer(whole))) == whole
    assert words(told(account(tmp_path), TextDelta(whole), answer(whole))) == whole
    ended = EntryRecorded(RunEnded(run_id="r", reason=EndReason.COMPLETED, text=whole, answered=True))
    assert words(told(account(tmp_path), TextDelta(whole), answer(whole), ended)) == whole
    thoughts = told(account(tmp_path), ReasoningDelta("why"), answer(whole, reasoning="why"))
    assert words(thoughts, "agent_thought_chunk") == "why"


def test_an_answer_that_breaks_off_is_said_to_count_for_nothing(tmp_path: Path) -> None:
    failed = ModelFailed(
        call_id="m", model="a:b", happening=ModelFailureKind.UNAVAILABLE, sentence="Busy with hunter2."
    )
    updates = told(
        account(tmp_path), TextDelta("The ans"), EntryRecorded(failed), TextDelta("The answer"), answer("The answer")
    )
    assert words(updates) == "The ansThe answer"
    assert words(updates, "agent_thought_chunk").strip() == (
        "Busy with [masked]. The part of its answer that arrived does not count."
    )


def test_side_tasks_and_answers_that_are_not_kept_are_not_shown(tmp_path: Path) -> None:
    assert told(account(tmp_path), answer("a summary", purpose="summary"), answer("garbled", kept=False)) == []


def test_a_call_is_followed_from_its_announcement_to_its_end(tmp_path: Path) -> None:
    call = ToolCall("c1", "terminal", '{"command": "make"}')
    long = "x" * (RESULT_CHARS + 7)
    updates = told(
        account(tmp_path),
        answer("", call),
        EntryRecorded(ToolStarted(call_id="c1", name="terminal", arguments=call.arguments)),
        ToolProgress("c1", "terminal", "compiling"),
        EntryRecorded(ToolFinished(call_id="c1", name="terminal", text=long)),
        ToolProgress("c1", "terminal", "too late"),
    )
    shown: list[Any] = list(updates)
    assert [one.status for one in shown] == ["pending", "in_progress", "in_progress", "completed"]
    assert (shown[0].title, shown[0].kind, shown[0].raw_input) == ("terminal: make", "execute", {"command": "make"})
    assert shown[2].content[0].content.text == "compiling"
    assert shown[3].content[0].content.text.endswith("[… 7 more characters, which the model has read]")


def test_calls_that_never_ended_are_closed_with_the_run(tmp_path: Path) -> None:
    ended = RunEnded(run_id="r", reason=EndReason.INTERRUPTED, text="", sentence="Interrupted.")
    updates: list[Any] = told(account(tmp_path), answer("", ToolCall("c1", "recall", "{}")), EntryRecorded(ended))
    assert updates[1].status == "failed"


def test_arguments_that_are_no_json_are_shown_all_the_same(tmp_path: Path) -> None:
    for arguments in ("{broken", "[1]", '"\ud800"', "[" * 5_000):
        (update,) = told(account(tmp_path), answer("", ToolCall("c1", "file_edit", arguments)))
        assert json.dumps(update.model_dump(mode="json"))


def test_an_edit_shows_no_file_outside_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "secret")
    for path in ("../secret", "link", str(tmp_path / "secret")):
        call = ToolCall("c1", "file_edit", json.dumps({"path": path, "new": "x"}))
        update: Any = told(account(inside), answer("", call))[0]
        assert update.content[0].old_text is None


def test_a_question_is_about_the_call_with_its_very_arguments(tmp_path: Path) -> None:
    made = account(tmp_path)
    calls = [ToolCall(f"c{n}", "terminal", json.dumps({"command": f"echo {n}"})) for n in range(3)]
    told(made, answer("", *calls))
    key = _key('{"command":"echo 1"}')
    question = PermissionQuestion("terminal", "…", "", key, frozenset({ToolEffect.EXEC}), tuple(GrantScope))
    assert made.call_for_question(question)[0] == "c1"
    told(made, EntryRecorded(ToolStarted(call_id="c1", name="terminal", arguments="{}")))
    assert made.call_for_question(question) == ("", [])  # no other call is taken for it
    assert made.call_for_question(PermissionQuestion("other", "…", "", key, frozenset(), ()))[0] == ""


def test_a_question_never_comes_with_the_diff_of_another_call(tmp_path: Path) -> None:
    made = account(tmp_path)
    told(made, answer("", ToolCall("c1", "file_edit", '{"path":"docs/a.md","new":"harmless"}')))
    spec = ToolSpec("file_edit", "", {}, effects=frozenset({ToolEffect.WRITE}))
    for path, new, found in (("src/auth.py", "evil", ""), ("docs/a.md", "harmless", "c1")):
        command = ProposedCall.from_arguments(spec, {"path": path, "new": new})
        assert command is not None
        question = PermissionQuestion(
            "file_edit", command.describe(str), "", command.key, spec.effects, (GrantScope.ONCE,)
        )
        call_id, shown = made.call_for_question(question)
        assert (call_id, len(shown)) == (found, 1 if found else 0)
    assert made.call_for_question(PermissionQuestion("file_edit", "…", "", "", spec.effects, (GrantScope.ONCE,))) == (
        "",
        [],
    )


def _key(text: str) -> str:
    return ProposedCall("terminal", text, {}).key


def test_a_replay_leaves_out_what_was_taken_back_and_tells_what_people_said(tmp_path: Path) -> None:
    entries = [
        UserSaid(text="one"),
        answer("first").entry,
        UserSaid(text="two"),
        answer("second").entry,
        TurnUndone(text="two"),
        UserSaid(text="a skill", source=MessageSource.SKILL),
        UserSaid(text="three"),
        answer("", ToolCall("c1", "recall", "{}")).entry,
        ToolFinished(call_id="c1", name="recall", text="no", outcome=ToolOutcome.DENIED),
    ]
    updates: list[Any] = list(replay_entries(entries, account(tmp_path, live=False)))
    assert words(updates, "user_message_chunk") == "onethree"
    assert words(updates) == "first"
    assert updates[-1].status == "failed"


def test_sentences_of_the_house_are_thoughts_without_credentials(tmp_path: Path) -> None:
    (update,) = told(account(tmp_path), StatusMessage("A server with hunter2 is gone."))
    assert words([update], "agent_thought_chunk").strip() == "A server with [masked] is gone."


@pytest.mark.parametrize(
    ("name", "toolset", "kind"),
    [
        ("file_read", "workspace", "read"),
        ("sandbox_exec", "sandbox", "execute"),
        ("gitlab_job_log", "gitlab", "fetch"),
        ("fetch_to_sandbox", "sandbox", "fetch"),
        ("clock_now", "mcp", "other"),
    ],
)
def test_every_tool_has_a_kind(name: str, toolset: str, kind: str) -> None:
    assert tool_kind(name, toolset) == kind


@pytest.mark.parametrize("reason", list(EndReason))
def test_every_end_has_a_word_of_the_protocol_or_is_an_error(reason: EndReason) -> None:
    outcome = RunOutcome("s", "r", reason, "", reason is EndReason.COMPLETED, "Why it ended.", (), 1, BILL)
    expected = {
        EndReason.COMPLETED: "end_turn",
        EndReason.MAX_ITERATIONS: "max_turn_requests",
        EndReason.COST_LIMIT: "max_turn_requests",
        EndReason.TIME_LIMIT: "max_turn_requests",
        EndReason.CONTEXT_LIMIT: "max_tokens",
        EndReason.REFUSED: "refusal",
        EndReason.INTERRUPTED: "cancelled",
    }
    if reason in expected:
        assert _stop_reason(outcome) == expected[reason]
    else:
        with pytest.raises(RequestError, match="Why it ended"):
            _stop_reason(outcome)


class Shelf:
    def __init__(self) -> None:
        self.put: dict[str, bytes] = {}

    async def attach(self, name: str, content: bytes) -> str:
        self.put[name] = content
        return f"/kept/{name}"


async def test_a_message_is_composed_of_everything_that_came_with_it(tmp_path: Path) -> None:
    shelf = Shelf()
    blocks = [
        text_block("Look at"),
        resource_link_block("a b.py", (tmp_path / "a b.py").as_uri()),
        text_block("and"),
        resource_link_block("page", "https://example.org/x"),
        resource_block(embedded_text_resource("file:///else/where.py#L3-L9", "```\ncode")),
        resource_block(embedded_blob_resource("file:///x/bird.png", base64.b64encode(b"\x89PNG").decode())),
    ]
    message = await compose_prompt(blocks, tmp_path, shelf.attach)
    for part in ("`a b.py`", "`page (https://example.org/x)`", "The file /else/where.py:L3-L9:\n````\n```\ncode"):
        assert part in message
    assert "The file /x/bird.png, 4 bytes, is in the sandbox: /kept/bird.png" in message
    assert shelf.put == {"bird.png": b"\x89PNG"}


async def test_a_long_file_that_comes_along_is_put_away(tmp_path: Path) -> None:
    shelf = Shelf()
    long = "".join(f"line {number}\n" for number in range(20_000))
    message = await compose_prompt(
        [resource_block(embedded_text_resource("file:///x.log", long))], tmp_path, shelf.attach
    )
    assert len(message) < 5_000
    assert long.encode() in next(iter(shelf.put.values()))


async def test_no_text_chooses_what_is_read(tmp_path: Path) -> None:
    """Editors link to files; what stands in a text may have been pasted."""
    (tmp_path / "secret.txt").write_text("hunter2")
    along = resource_block(embedded_text_resource("file:///x.md", "see @secret.txt"))
    assert "hunter2" not in await compose_prompt([text_block("read it"), along], tmp_path, Shelf().attach)
    assert "hunter2" not in await compose_prompt([text_block("read @secret.txt")], tmp_path, Shelf().attach)


@pytest.mark.parametrize("uri", ["http://[broken", "file://", "", "zed:///agent/x", "file:///a%00b"])
async def test_any_address_can_be_linked_to(tmp_path: Path, uri: str) -> None:
    assert "look" in await compose_prompt([text_block("look"), resource_link_block("n", uri)], tmp_path, Shelf().attach)


async def test_a_file_that_is_no_base64_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not Base64"):
        await compose_prompt([resource_block(embedded_blob_resource("file:///x", "?!"))], tmp_path, Shelf().attach)


def test_lines_are_put_together_and_too_long_ones_are_skipped() -> None:
    lines = FrameSplitter(most=10)
    assert list(lines.feed(b"ab")) == []
    assert list(lines.feed(b"c\n\n \r\nde\nf")) == [b"abc", b"de"]
    assert list(lines.feed(b"x" * 9)) == []
    assert list(lines.feed(b"y" * 900)) == []
    assert list(lines.feed(b"z\nok\n")) == [None, b"ok"]
    assert list(lines.feed(b"end")) == []
    assert list(lines.end()) == [b"end"]


async def test_what_waits_for_a_slow_editor_grows_together() -> None:
    sent: list[Any] = []
    slow = asyncio.Event()

    async def send(update: EditorUpdate) -> None:
        await slow.wait()
        sent.append(update)

    outbox = UpdateQueue(send)
    outbox.put(message_chunk("before "))
    assert sent == []
    outbox.open()
    await asyncio.sleep(0)
    for number in range(1_000):
        outbox.put(message_chunk(f"{number} "))
    slow.set()
    await outbox.wait_until_sent()
    assert len(sent) == 2
    assert sent[1].content.text.endswith("998 999 ")


async def test_an_editor_that_is_gone_is_no_error() -> None:
    async def send(update: EditorUpdate) -> None:
        raise ConnectionError

    outbox = UpdateQueue(send)
    outbox.open()
    outbox.put(message_chunk("to nobody"))
    await outbox.wait_until_sent()


def test_folders_survive_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "folders"
    folders = SessionFolders(path)
    assert folders.load() == {}
    folders.add("a", Path("/one"))
    path.write_bytes(path.read_bytes() + b"\xff{broken\n[1,2]\n")
    folders.add("b", Path("/two"))
    folders.add("a", Path("/three"))
    assert folders.load() == {"a": "/three", "b": "/two"}
    path.write_bytes(b"".join(b'["%07d","/x"]\n' % number for number in range(80_000)))
    folders.add("c", Path("/four"))
    assert folders.load()["c"] == "/four"
    assert path.stat().st_size < 700_000
    SessionFolders(tmp_path / "no" / "such").add("a", Path("/one"))


def test_help_teaches_how_an_editor_is_told() -> None:
    page = CliRunner().invoke(acp, ["--help"]).output
    snippet = page[page.index("{\n") : page.rindex("}") + 1]
    assert json.loads(snippet)["agent_servers"]["Hummingbird"]["args"][0] == "acp"
    for option in ("--config", "--model", "--plan", "--project", "--sandbox", "-v"):
        assert option in page


def test_what_does_not_go_together_is_said() -> None:
    done = CliRunner().invoke(acp, ["--context", "c", "--sandbox", "podman"])
    assert "is for Kubernetes" in done.output
    assert "--project is empty" in CliRunner().invoke(acp, ["--project", " "]).output
