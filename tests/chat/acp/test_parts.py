"""The parts behind an editor's conversations, each for itself (C10)."""

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

from hummingbird.chat.acp.account import Account, replayed
from hummingbird.chat.acp.calls import kind_of
from hummingbird.chat.acp.folders import Folders
from hummingbird.chat.acp.limits import RESULT_CHARS
from hummingbird.chat.acp.outbox import Outbox, Update, spoken
from hummingbird.chat.acp.prompts import composed
from hummingbird.chat.acp.session import _reason
from hummingbird.chat.acp.wire import Lines
from hummingbird.cli.acp import acp
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.events import Event, Progressed, ReasoningDelta, Recorded, TextDelta, Told
from hummingbird.domain.journal import (
    EndReason,
    Happening,
    ModelAnswered,
    ModelFailed,
    RunEnded,
    Source,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage, ToolCall
from hummingbird.domain.permissions import Command, Question, Scope
from hummingbird.domain.runs import Outcome
from hummingbird.domain.tools import Effect, ToolSpec
from tests.chat.scripted_partner import BILL


def account(folder: Path, *, live: bool = True) -> Account:
    return Account(folder, lambda name: "", lambda text: text.replace("hunter2", "[masked]"), live)


def told(made: Account, *events: Event) -> list[Update]:
    return [update for event in events for update in made.of(event)]


def words(updates: Sequence[Any], kind: str = "agent_message_chunk") -> str:
    return "".join(one.content.text for one in updates if one.session_update == kind)


def answer(text: str, *calls: ToolCall, **more: Any) -> Recorded:
    message = AssistantMessage(text, more.pop("reasoning", ""), calls)
    return Recorded(ModelAnswered(call_id="m", model="a:b", message=message, **more))


def test_c10_what_streamed_is_not_said_again(tmp_path: Path) -> None:
    whole = "all of it"
    assert words(told(account(tmp_path), answer(whole))) == whole
    assert words(told(account(tmp_path), TextDelta("all "), answer(whole))) == whole
    assert words(told(account(tmp_path), TextDelta(whole), answer(whole))) == whole
    ended = Recorded(RunEnded(run_id="r", reason=EndReason.COMPLETED, text=whole, answered=True))
    assert words(told(account(tmp_path), TextDelta(whole), answer(whole), ended)) == whole
    thoughts = told(account(tmp_path), ReasoningDelta("why"), answer(whole, reasoning="why"))
    assert words(thoughts, "agent_thought_chunk") == "why"


def test_c10_an_answer_that_breaks_off_is_said_to_count_for_nothing(tmp_path: Path) -> None:
    failed = ModelFailed(call_id="m", model="a:b", happening=Happening.UNAVAILABLE, sentence="Busy with hunter2.")
    updates = told(
        account(tmp_path), TextDelta("The ans"), Recorded(failed), TextDelta("The answer"), answer("The answer")
    )
    assert words(updates) == "The ansThe answer"
    assert words(updates, "agent_thought_chunk").strip() == (
        "Busy with [masked]. What came of its answer until then does not count."
    )


def test_c10_side_tasks_and_answers_that_are_not_kept_are_not_shown(tmp_path: Path) -> None:
    assert told(account(tmp_path), answer("a summary", purpose="summary"), answer("garbled", kept=False)) == []


def test_c10_a_call_is_followed_from_its_announcement_to_its_end(tmp_path: Path) -> None:
    call = ToolCall("c1", "terminal", '{"command": "make"}')
    long = "x" * (RESULT_CHARS + 7)
    updates = told(
        account(tmp_path),
        answer("", call),
        Recorded(ToolStarted(call_id="c1", name="terminal", arguments=call.arguments)),
        Progressed("c1", "terminal", "compiling"),
        Recorded(ToolFinished(call_id="c1", name="terminal", text=long)),
        Progressed("c1", "terminal", "too late"),
    )
    shown: list[Any] = list(updates)
    assert [one.status for one in shown] == ["pending", "in_progress", "in_progress", "completed"]
    assert (shown[0].title, shown[0].kind, shown[0].raw_input) == ("terminal: make", "execute", {"command": "make"})
    assert shown[2].content[0].content.text == "compiling"
    assert shown[3].content[0].content.text.endswith("[… 7 more characters, which the model has read]")


def test_c10_calls_that_never_ended_are_closed_with_the_run(tmp_path: Path) -> None:
    ended = RunEnded(run_id="r", reason=EndReason.INTERRUPTED, text="", sentence="Interrupted.")
    updates: list[Any] = told(account(tmp_path), answer("", ToolCall("c1", "recall", "{}")), Recorded(ended))
    assert updates[1].status == "failed"


def test_c10_arguments_that_are_no_json_are_shown_all_the_same(tmp_path: Path) -> None:
    for arguments in ("{broken", "[1]", '"\ud800"', "[" * 5_000):
        (update,) = told(account(tmp_path), answer("", ToolCall("c1", "file_edit", arguments)))
        assert json.dumps(update.model_dump(mode="json"))


def test_c10_an_edit_shows_no_file_outside_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "secret")
    for path in ("../secret", "link", str(tmp_path / "secret")):
        call = ToolCall("c1", "file_edit", json.dumps({"path": path, "new": "x"}))
        update: Any = told(account(inside), answer("", call))[0]
        assert update.content[0].old_text is None


def test_t9_c10_a_question_is_about_the_call_with_its_very_arguments(tmp_path: Path) -> None:
    made = account(tmp_path)
    calls = [ToolCall(f"c{n}", "terminal", json.dumps({"command": f"echo {n}"})) for n in range(3)]
    told(made, answer("", *calls))
    key = _key('{"command":"echo 1"}')
    question = Question("terminal", "…", "", key, frozenset({Effect.EXEC}), tuple(Scope))
    assert made.asked_about(question)[0] == "c1"
    told(made, Recorded(ToolStarted(call_id="c1", name="terminal", arguments="{}")))
    assert made.asked_about(question) == ("", [])  # no other call is taken for it
    assert made.asked_about(Question("other", "…", "", key, frozenset(), ()))[0] == ""


def test_t9_c10_a_question_never_comes_with_the_diff_of_another_call(tmp_path: Path) -> None:
    made = account(tmp_path)
    told(made, answer("", ToolCall("c1", "file_edit", '{"path":"docs/a.md","new":"harmless"}')))
    spec = ToolSpec("file_edit", "", {}, effects=frozenset({Effect.WRITE}))
    for path, new, found in (("src/auth.py", "evil", ""), ("docs/a.md", "harmless", "c1")):
        command = Command.of(spec, {"path": path, "new": new})
        assert command is not None
        question = Question("file_edit", command.shown(str), "", command.key, spec.effects, (Scope.ONCE,))
        call_id, shown = made.asked_about(question)
        assert (call_id, len(shown)) == (found, 1 if found else 0)
    assert made.asked_about(Question("file_edit", "…", "", "", spec.effects, (Scope.ONCE,))) == ("", [])


def _key(text: str) -> str:
    return Command("terminal", text, {}).key


def test_c10_a_replay_leaves_out_what_was_taken_back_and_tells_what_people_said(tmp_path: Path) -> None:
    entries = [
        UserSaid(text="one"),
        answer("first").entry,
        UserSaid(text="two"),
        answer("second").entry,
        TurnUndone(text="two"),
        UserSaid(text="a skill", source=Source.SKILL),
        UserSaid(text="three"),
        answer("", ToolCall("c1", "recall", "{}")).entry,
        ToolFinished(call_id="c1", name="recall", text="no", outcome=ToolOutcome.DENIED),
    ]
    updates: list[Any] = list(replayed(entries, account(tmp_path, live=False)))
    assert words(updates, "user_message_chunk") == "onethree"
    assert words(updates) == "first"
    assert updates[-1].status == "failed"


def test_c10_sentences_of_the_house_are_thoughts_without_credentials(tmp_path: Path) -> None:
    (update,) = told(account(tmp_path), Told("A server with hunter2 is gone."))
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
def test_c10_every_tool_has_a_kind(name: str, toolset: str, kind: str) -> None:
    assert kind_of(name, toolset) == kind


@pytest.mark.parametrize("reason", list(EndReason))
def test_l12_c10_every_end_has_a_word_of_the_protocol_or_is_an_error(reason: EndReason) -> None:
    outcome = Outcome("s", "r", reason, "", reason is EndReason.COMPLETED, "Why it ended.", (), 1, BILL)
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
        assert _reason(outcome) == expected[reason]
    else:
        with pytest.raises(RequestError, match="Why it ended"):
            _reason(outcome)


class Shelf:
    def __init__(self) -> None:
        self.put: dict[str, bytes] = {}

    async def attach(self, name: str, content: bytes) -> str:
        self.put[name] = content
        return f"/kept/{name}"


async def test_c10_a_message_is_composed_of_everything_that_came_with_it(tmp_path: Path) -> None:
    shelf = Shelf()
    blocks = [
        text_block("Look at"),
        resource_link_block("a b.py", (tmp_path / "a b.py").as_uri()),
        text_block("and"),
        resource_link_block("page", "https://example.org/x"),
        resource_block(embedded_text_resource("file:///else/where.py#L3-L9", "```\ncode")),
        resource_block(embedded_blob_resource("file:///x/bird.png", base64.b64encode(b"\x89PNG").decode())),
    ]
    message = await composed(blocks, tmp_path, shelf.attach)
    for part in ("`a b.py`", "`page (https://example.org/x)`", "The file /else/where.py:L3-L9:\n````\n```\ncode"):
        assert part in message
    assert "The file /x/bird.png, 4 bytes, is in the sandbox: /kept/bird.png" in message
    assert shelf.put == {"bird.png": b"\x89PNG"}


async def test_c10_a_long_file_that_comes_along_is_put_away(tmp_path: Path) -> None:
    shelf = Shelf()
    long = "".join(f"line {number}\n" for number in range(20_000))
    message = await composed([resource_block(embedded_text_resource("file:///x.log", long))], tmp_path, shelf.attach)
    assert len(message) < 5_000
    assert long.encode() in next(iter(shelf.put.values()))


async def test_c10_no_text_chooses_what_is_read(tmp_path: Path) -> None:
    """Editors link to files; what stands in a text may have been pasted."""
    (tmp_path / "secret.txt").write_text("hunter2")
    along = resource_block(embedded_text_resource("file:///x.md", "see @secret.txt"))
    assert "hunter2" not in await composed([text_block("read it"), along], tmp_path, Shelf().attach)
    assert "hunter2" not in await composed([text_block("read @secret.txt")], tmp_path, Shelf().attach)


@pytest.mark.parametrize("uri", ["http://[broken", "file://", "", "zed:///agent/x", "file:///a%00b"])
async def test_c10_any_address_can_be_linked_to(tmp_path: Path, uri: str) -> None:
    assert "look" in await composed([text_block("look"), resource_link_block("n", uri)], tmp_path, Shelf().attach)


async def test_c10_a_file_that_is_no_base64_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="is not Base64"):
        await composed([resource_block(embedded_blob_resource("file:///x", "?!"))], tmp_path, Shelf().attach)


def test_c10_lines_are_put_together_and_too_long_ones_are_skipped() -> None:
    lines = Lines(most=10)
    assert list(lines.feed(b"ab")) == []
    assert list(lines.feed(b"c\n\n \r\nde\nf")) == [b"abc", b"de"]
    assert list(lines.feed(b"x" * 9)) == []
    assert list(lines.feed(b"y" * 900)) == []
    assert list(lines.feed(b"z\nok\n")) == [None, b"ok"]
    assert list(lines.feed(b"end")) == []
    assert list(lines.end()) == [b"end"]


async def test_c10_what_waits_for_a_slow_editor_grows_together() -> None:
    sent: list[Any] = []
    slow = asyncio.Event()

    async def send(update: Update) -> None:
        await slow.wait()
        sent.append(update)

    outbox = Outbox(send)
    outbox.put(spoken("before "))
    assert sent == []
    outbox.open()
    await asyncio.sleep(0)
    for number in range(1_000):
        outbox.put(spoken(f"{number} "))
    slow.set()
    await outbox.drained()
    assert len(sent) == 2
    assert sent[1].content.text.endswith("998 999 ")


async def test_c10_an_editor_that_is_gone_is_no_error() -> None:
    async def send(update: Update) -> None:
        raise ConnectionError

    outbox = Outbox(send)
    outbox.open()
    outbox.put(spoken("to nobody"))
    await outbox.drained()


def test_c10_folders_survive_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "folders"
    folders = Folders(path)
    assert folders.known() == {}
    folders.add("a", Path("/one"))
    path.write_bytes(path.read_bytes() + b"\xff{broken\n[1,2]\n")
    folders.add("b", Path("/two"))
    folders.add("a", Path("/three"))
    assert folders.known() == {"a": "/three", "b": "/two"}
    path.write_bytes(b"".join(b'["%07d","/x"]\n' % number for number in range(80_000)))
    folders.add("c", Path("/four"))
    assert folders.known()["c"] == "/four"
    assert path.stat().st_size < 700_000
    Folders(tmp_path / "no" / "such").add("a", Path("/one"))


def test_g6_c10_help_teaches_how_an_editor_is_told() -> None:
    page = CliRunner().invoke(acp, ["--help"]).output
    snippet = page[page.index("{\n") : page.rindex("}") + 1]
    assert json.loads(snippet)["agent_servers"]["Hummingbird"]["args"][0] == "acp"
    for option in ("--config", "--model", "--plan", "--project", "--sandbox", "-v"):
        assert option in page


def test_g6_c10_what_does_not_go_together_is_said() -> None:
    done = CliRunner().invoke(acp, ["--context", "c", "--sandbox", "podman"])
    assert "is for Kubernetes" in done.output
    assert "--project is empty" in CliRunner().invoke(acp, ["--project", " "]).output
