"""What is said in which order, what waits, what is given back; and every command."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hummingbird.chat.attachments import MessageComposer, PasteStore
from hummingbird.chat.commands import COMMANDS, parse_command, unknown_command_text
from hummingbird.chat.conversation import TerminalConversation
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.partner import CompactionPreview
from hummingbird.chat.questions import QuestionQueue
from hummingbird.chat.screen import INLINE_BYTES, MESSAGE_BYTES
from hummingbird.core.errors import UsageError
from hummingbird.core.permissions import GrantScope, PermissionQuestion
from hummingbird.core.tool_spec import ToolEffect
from tests.chat.noted_screen import NotedScreen
from tests.chat.scripted_partner import ScriptedPartner


class Stage:
    def __init__(self, folder: Path) -> None:
        self.screen = NotedScreen()
        self.narrator = Narrator(self.screen)
        self.now = 0.0
        self.questions = QuestionQueue(self.screen, clock=lambda: self.now)
        self.partner = ScriptedPartner(self.narrator, self.questions, self.questions)
        self.composer = MessageComposer(folder, self.partner.attach, PasteStore())
        self.talk = TerminalConversation(self.partner, self.screen, self.narrator, self.questions, self.composer)
        self.gate = asyncio.Event()

    def hold(self) -> None:
        """The next messages wait for the gate."""
        self.partner.script = lambda partner, text: self._held(text)

    async def _held(self, text: str) -> str:
        await self.gate.wait()
        return f"heard {text}"

    async def did(self, *texts: str) -> str:
        """All that was shown."""
        for text in texts:
            self.talk.submit(text)
        await asyncio.wait_for(self.talk.wait_until_idle(), 60)
        return self.screen.text


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.gate.set()
    await made.talk.close()
    assert made.partner.closed


async def begun(stage: Stage, text: str = "first") -> None:
    stage.hold()
    stage.talk.submit(text)
    await until(lambda: text in stage.partner.heard)


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not reached():  # noqa: ASYNC110 - whoever is asked tells nobody
            await asyncio.sleep(0.005)


async def test_messages_and_commands_that_wait_keep_their_order(stage: Stage) -> None:
    await begun(stage)
    for text in ("second", "/new", "/model owl", "third"):
        stage.talk.submit(text)
    assert stage.talk.queued_texts == ("second", "/new", "/model owl", "third")
    stage.gate.set()
    await stage.did()
    assert stage.partner.heard == ["first", "second", "/new", "/model owl", "third"]


async def test_an_interrupt_gives_back_what_waits_and_what_comes_after_it_is_said(stage: Stage) -> None:
    await begun(stage)
    for text in ("second", "/new", "third"):
        stage.talk.submit(text)
    assert stage.talk.interrupt()
    stage.talk.submit("after the interrupt")
    stage.gate.set()
    shown = await stage.did()
    assert stage.screen.given_back == ["second\nthird"]
    assert "not done: /new" in shown
    assert stage.partner.heard == ["first", "after the interrupt"]
    assert not stage.talk.interrupt()


async def test_steer_reaches_the_run_and_what_came_too_late_is_said_next(stage: Stage) -> None:
    await begun(stage)
    stage.talk.submit("second")
    stage.talk.submit("/steer be quick")
    await asyncio.sleep(0)
    assert stage.partner.steered == ["be quick"]
    stage.partner.undelivered = ("be quick",)
    stage.gate.set()
    await stage.did()
    assert stage.partner.heard == ["first", "be quick", "second"]


async def test_steer_without_a_run_is_a_message(stage: Stage) -> None:
    await stage.did("/steer be quick")
    assert stage.partner.heard == ["be quick"]


async def test_what_was_steered_into_an_interrupted_run_is_given_back(stage: Stage) -> None:
    await begun(stage)
    stage.partner.undelivered = ("be quick",)
    stage.talk.interrupt()
    await stage.did()
    assert stage.screen.given_back == ["be quick"]


async def test_a_message_that_cannot_be_sent_comes_back_with_all_that_waits(stage: Stage) -> None:
    stage.partner.takes_files = False
    long = "x" * (INLINE_BYTES + 1)
    shown = await stage.did(long, "second")
    assert "too long for one message" in shown
    assert stage.screen.given_back == [f"{long}\nsecond"]
    assert stage.partner.heard == []


@pytest.mark.parametrize("error", [UsageError("There is no model: name one."), ZeroDivisionError("a bug")])
async def test_whatever_breaks_a_turn_the_words_come_back_and_the_prompt_stays(stage: Stage, error: Exception) -> None:
    async def broken(text: str) -> str:
        raise error

    stage.partner.script = lambda partner, text: broken(text)
    assert str(error) in await stage.did("hello")
    assert stage.screen.given_back == ["hello"]
    stage.partner.script = lambda partner, text: "well again"
    await stage.did("once more")
    assert stage.partner.heard[-1] == "once more"


async def test_an_interrupt_before_the_run_has_begun_gives_the_message_back_and_spares_the_next(
    stage: Stage,
) -> None:
    stage.partner.shelf.clear()
    stage.talk.submit("x" * (MESSAGE_BYTES + 1))
    await asyncio.sleep(0.01)
    assert stage.talk.interrupt()
    stage.talk.submit("the next one")
    await stage.did()
    assert stage.partner.heard == ["the next one"]
    assert [len(text) for text in stage.screen.given_back] == [MESSAGE_BYTES + 1]


async def test_retry_says_the_last_message_again_and_undo_gives_it_back(stage: Stage) -> None:
    await stage.did("one", "two", "/retry")
    assert stage.partner.heard == ["one", "two"]
    assert stage.screen.lines.count("> two") == 2
    await stage.did("/undo")
    assert stage.screen.given_back == ["two"]
    assert stage.partner.heard == ["one"]


async def test_retry_takes_a_mentioned_file_along_as_it_is_now_and_undo_gives_back_what_was_typed(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("before")
    await stage.did("read @a")
    (tmp_path / "a").write_text("after")
    await stage.did("/retry")
    assert [text.count("The file a") for text in stage.partner.heard] == [1]
    assert "after" in stage.partner.heard[0]
    await stage.did("/undo")
    assert stage.screen.given_back == ["read @a"]


async def test_compress_is_carried_out_and_shown(stage: Stage) -> None:
    shown = await stage.did("/compress the wings")
    assert "9,000 → 2,000 tokens" in shown
    assert "They talked about **birds**." in shown
    assert "/apply" in stage.partner.heard
    stage.partner.preview = CompactionPreview(refusal="There is nothing to compress yet.")
    assert "There is nothing to compress yet." in await stage.did("/compress")
    assert "no compaction to take back" in await stage.did("/compress undo")


async def test_an_interrupted_command_leaves_the_prompt(stage: Stage) -> None:
    await stage.did("one")
    stage.talk.submit("/rewind")
    await until(lambda: stage.questions.picker is not None)
    assert stage.talk.interrupt()
    await stage.did()
    assert "/rewind is interrupted" in stage.screen.text
    assert stage.questions.picker is None


async def test_approve_answers_the_question_for_permission_and_lists_grants_without_one(stage: Stage) -> None:
    question = PermissionQuestion(
        "terminal", "terminal ls", "the default", "k", frozenset({ToolEffect.EXEC}), tuple(GrantScope)
    )
    stage.partner.script = lambda partner, text: partner.asker.ask(question)
    assert "terminal ls: this session" in await stage.did("/approve")
    assert "nothing to approve" in await stage.did("/approve session")
    assert "/approve once" in await stage.did("/approve maybe")
    stage.talk.submit("ask me")
    await until(lambda: stage.questions.is_open)
    stage.talk.submit("/approve no")
    await until(lambda: "only just appeared" in stage.screen.text)
    stage.now += 1
    await stage.did("/approve no")
    assert not stage.questions.is_open
    assert "\n  no\n" in stage.screen.text
    stage.talk.submit("again")
    await until(lambda: stage.questions.is_open)
    stage.now += 1
    assert "\n  yes\n" in await stage.did("/approve")


async def test_approve_is_no_answer_to_a_question_for_words(stage: Stage) -> None:
    """A plain one lists what was allowed, as it does without any question; the person still has the word."""
    answers: list[str] = []

    async def ask(partner: ScriptedPartner) -> str:
        answers.append(await partner.clarifier.clarify("Which?", []))
        return "thanks"

    stage.partner.script = lambda partner, text: ask(partner)
    stage.talk.submit("ask me")
    await until(lambda: stage.questions.is_open)
    stage.now += 1
    stage.talk.submit("/approve")
    stage.talk.submit("/approve no")
    await until(lambda: "No permission is asked for" in stage.screen.text)
    assert (answers, stage.questions.is_open) == ([], True)
    assert "terminal ls: this session" in stage.screen.text
    await stage.did("the second")
    assert answers == ["the second"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/help", "/steer TEXT"),
        ("/new", "The last one is kept: /resume abcdef123456"),
        ("/resume abc", "birds"),
        ("/resume zzz", "No session's id begins with zzz."),
        ("/sessions", "abcdef123456"),
        ("/model owl", "scripted:owl"),
        ("/tools", "terminal                 ask"),
        ("/undo edit", "a.py is as it was."),
        ("/undo file", "/undo edit"),
        ("/undo", "There is no message to take back."),
        ("/stop 2", "Stopped 2."),
        ("/cost", "12,000 of 100,000 tokens of context (12%)"),
        ("/verbose", "are shown from now on"),
        ("/memory", "facts"),
        ("/todo", "Nothing is on the list."),
        ("/steer", "Say what to do"),
        ("/save /tmp/there", "The session is in /tmp/there"),
        ("/save", "hummingbird-abcdef123456"),
        ("/hepl", "Did you mean /help"),
        ("/context", "results of tools"),
        ("/diff", "+new"),
        ("/mcp", "time: 2 tools"),
        ("/skills", "/critique  Reviews."),
        ("/export", "The session is in"),
        ("!make", "ran make"),
        ("# tests run with make", "Remembered tests run with make."),
        ("/copy", "There is no answer to copy yet."),
        ("/rename Wings", "This session is called Wings."),
        ("/fork", "This is a copy now: copy00"),
        ("/permissions deny terminal(rm *)", "From now on: deny terminal(rm *)"),
        ("/zzzzzz", "There is no command /zzzzzz, so nothing is sent. /help lists all of them"),
    ],
)
async def test_each_command_says_what_it_did_or_what_to_do(stage: Stage, text: str, shown: str) -> None:
    assert shown in await stage.did(text)


async def test_a_session_that_was_resumed_is_taken_out_of_the_collectors_sight(
    stage: Stage, settling: list[str]
) -> None:
    await stage.did("/resume zzz")
    assert settling == []
    await stage.did("/resume abc")
    assert settling == ["commands"]


async def test_quit_leaves_and_stop_ends_the_run_without_losing_what_waits(stage: Stage) -> None:
    await begun(stage)
    stage.talk.submit("second")
    shown = await stage.did("/stop")
    assert "Stopped everything." in shown
    assert stage.screen.given_back == ["second"]
    await stage.did("/quit")
    assert stage.talk.left.is_set()


async def test_an_own_command_is_sent_as_what_it_stands_for(stage: Stage) -> None:
    await stage.did("/critique main", "/init")
    assert stage.partner.heard[0] == "Review main"
    assert "write AGENTS.md" in stage.partner.heard[1]


async def test_what_cannot_be_meant_is_not_sent_but_given_back(stage: Stage) -> None:
    (stage.composer.start / "wings.py").touch()
    shown = await stage.did("/compres now", "mend @wing.py", "ask @alice")
    assert "There is no command /compres, so nothing is sent. Did you mean /compress" in shown
    assert "There is no file wing.py, so nothing is sent. Did you mean @wings.py?" in shown
    assert stage.partner.heard == []
    assert stage.screen.given_back == ["/compres now", "mend @wing.py\nask @alice"]
    await stage.did("ask @alice", "`@wing.py` is fine")
    assert stage.partner.heard == ["ask @alice", "`@wing.py` is fine"]


@pytest.mark.parametrize(
    ("typed", "name"), [("/exit", "quit"), ("/clear", "new"), ("/compact now", "compress"), ("?", "help")]
)
def test_other_names_of_commands(typed: str, name: str) -> None:
    meant = parse_command(typed)
    assert meant is not None
    assert meant.command is COMMANDS[name]


@pytest.mark.parametrize("text", ["/etc/hosts", "/etc/hosts is odd", " /tmp is full", "/", "a /help", "// x", "/1"])
def test_a_path_is_not_a_command(text: str) -> None:
    assert parse_command(text) is None


def test_every_command_of_the_requirements_is_there() -> None:
    wanted = "help new resume sessions model tools compress undo retry stop cost verbose memory todo approve save quit"
    assert set(wanted.split()) <= set(COMMANDS)
    assert "\x1b" not in unknown_command_text("x")


async def test_the_beginning_of_a_command_is_enough_and_one_that_several_have_is_not_sent(stage: Stage) -> None:
    assert "12,000 of 100,000 tokens" in await stage.did("/cos")
    assert "> /usage\n" in await stage.did("/usage")  # as it was typed
    assert "There is no command /re," in await stage.did("/re")
    assert "There is no command /compre," in await stage.did("/compre wings")  # it would cost something
    assert stage.partner.heard == []


async def test_a_model_is_chosen_from_a_list(stage: Stage) -> None:
    stage.talk.submit("/model")
    while stage.questions.picker is None:  # noqa: ASYNC110 - the list opens soon
        await asyncio.sleep(0)
    stage.questions.picker.choose("owl")
    await asyncio.wait_for(stage.talk.wait_until_idle(), 60)
    assert stage.partner.heard == ["/model owl"]
    assert "From the next message on: scripted:owl" in stage.screen.text


async def test_review_asks_for_one_and_a_persons_own_command_of_that_name_comes_first(stage: Stage) -> None:
    await stage.did("/review the wings")
    assert stage.partner.heard[0].startswith("Review the changes of this workspace since its last commit")
    assert stage.partner.heard[0].endswith("Look at this above all: the wings")
    stage.partner.expand_command = lambda name, argument: f"my {name} of {argument}"  # type: ignore[method-assign]
    await stage.did("/review the beak")
    assert stage.partner.heard[1] == "my review of the beak"


async def test_status_names_the_session_and_ps_what_goes_on(stage: Stage) -> None:
    shown = await stage.did("/status", "/ps")
    assert "Session abcdef123456 in" in shown
    assert "ask before anything that changes or sends." in shown
    assert "Nothing goes on in the background." in shown
