"""Messages that arrive while a run is active."""

import asyncio
from collections.abc import Callable

from hummingbird.agent.budget import RunLimits
from hummingbird.core.errors import ProviderUnavailable
from hummingbird.core.journal import EndReason, FinishReason, MessageSource, UserSaid
from hummingbird.core.messages import AssistantMessage, Message, NoticeKind, ToolMessage, UserMessage
from hummingbird.core.protocols.model import ModelRequest
from tests.agent.stage import Stage, notices_in, paused, stage, tool
from tests.standins.scripted_model import ScriptedAnswer, ScriptedModel, ScriptLine, text_reply, tool_call_reply


class Desk:
    """A script whose lines can send messages while they are being spoken."""

    def __init__(self) -> None:
        self.on: Stage | None = None

    def send(self, *texts: str) -> None:
        assert self.on is not None
        for text in texts:
            self.on.loop.steer(text)

    def while_saying(self, answer: ScriptedAnswer, *texts: str) -> Callable[[ModelRequest], ScriptedAnswer]:
        def line(_: ModelRequest) -> ScriptedAnswer:
            self.send(*texts)
            return answer

        return line


def users(messages: list[Message]) -> list[str]:
    return [m.text for m in messages if isinstance(m, UserMessage)]


def playing(desk: Desk, *lines: ScriptLine, limits: RunLimits | None = None) -> ScriptedModel:
    model = ScriptedModel(lines)

    async def look() -> str:
        desk.send("while the tool ran")
        return "seen"

    desk.on = stage(model, tools=[tool("look", look)], limits=limits)
    return model


async def test_a_message_is_delivered_at_the_next_turn_boundary_as_a_user_message() -> None:
    """After the results, not between a call and its result."""
    desk = Desk()
    model = playing(desk, desk.while_saying(tool_call_reply(("look", "{}")), "during the call"), text_reply("done"))
    assert desk.on is not None
    await desk.on.run()
    messages = list(model.requests[1].messages)
    assert [type(m) for m in messages] == [UserMessage, AssistantMessage, ToolMessage, UserMessage, UserMessage]
    assert users(messages) == ["go", "during the call", "while the tool ran"]
    assert [entry.source for entry in desk.on.written(UserSaid)] == [
        MessageSource.USER,
        MessageSource.STEER,
        MessageSource.STEER,
    ]


async def test_messages_are_delivered_in_order() -> None:
    desk = Desk()
    model = playing(
        desk, desk.while_saying(text_reply(""), "1", "2"), desk.while_saying(text_reply(""), "3"), text_reply("done")
    )
    assert desk.on is not None
    await desk.on.run()
    assert users(list(model.requests[-1].messages)) == ["go", "1", "2", "3"]


async def test_a_message_that_arrives_during_the_last_answer_continues_the_run() -> None:
    desk = Desk()
    model = playing(desk, desk.while_saying(text_reply("done"), "and why?"), text_reply("because"))
    assert desk.on is not None
    outcome = await desk.on.run()
    assert (outcome.reason, outcome.text, outcome.iterations) == (EndReason.COMPLETED, "because", 2)
    assert list(model.requests[1].messages) == [UserMessage("go"), AssistantMessage("done"), UserMessage("and why?")]
    assert outcome.undelivered == ()


async def test_the_answer_to_a_message_is_not_glued_to_what_was_said_before_it() -> None:
    desk = Desk()
    playing(
        desk, desk.while_saying(text_reply("half of", finish=FinishReason.LENGTH), "stop that"), text_reply("all right")
    )
    assert desk.on is not None
    assert (await desk.on.run()).text == "all right"


async def test_a_message_during_a_wait_is_there_at_the_next_attempt() -> None:
    desk = Desk()
    model = playing(desk, desk.while_saying(ProviderUnavailable("busy"), "hurry"), text_reply("done"))
    assert desk.on is not None
    await desk.on.run()
    assert users(list(model.requests[1].messages)) == ["go", "hurry"]


async def test_a_paused_answer_is_sent_again_before_a_message_is_delivered() -> None:
    """The provider wants it back as it is."""
    desk = Desk()
    model = playing(desk, desk.while_saying(paused("part"), "hello?"), text_reply("done"), text_reply("hello"))
    assert desk.on is not None
    outcome = await desk.on.run()
    assert isinstance(model.requests[1].messages[-1], AssistantMessage)
    assert users(list(model.requests[2].messages)) == ["go", "hello?"]
    assert outcome.text == "hello"


async def test_a_new_message_starts_a_new_count_of_empty_answers() -> None:
    """They are counted in a row."""
    desk = Desk()
    empty = text_reply("")
    model = playing(
        desk, empty, empty, desk.while_saying(text_reply("done"), "more"), empty, empty, text_reply("more done")
    )
    assert desk.on is not None
    assert (await desk.on.run()).text == "more done"
    model.assert_consumed()


async def test_a_model_that_has_its_last_word_gets_no_message_any_more() -> None:
    """Undelivered ones go back to the sender."""
    desk = Desk()
    model = playing(
        desk,
        desk.while_saying(tool_call_reply(("look", "{}")), "too late"),
        text_reply("done"),
        limits=RunLimits(iterations=1),
    )
    assert desk.on is not None
    outcome = await desk.on.run()
    assert outcome.undelivered == ("too late",)
    assert users(list(outcome.messages)) == ["go"]
    assert notices_in(model.requests[1], NoticeKind.FINAL)


async def test_undelivered_messages_are_not_delivered_to_the_next_run() -> None:
    """Whoever got them back decides."""
    desk = Desk()
    model = playing(
        desk, desk.while_saying(text_reply("1"), "too late"), text_reply("2"), limits=RunLimits(iterations=1)
    )
    assert desk.on is not None
    assert (await desk.on.run("a")).undelivered == ("too late",)
    assert (await desk.on.run("b")).undelivered == ()
    assert users(list(model.requests[-1].messages)) == ["a", "b"]


async def test_messages_of_an_interrupted_run_go_back_to_the_sender() -> None:
    desk, began = Desk(), asyncio.Event()

    async def wait() -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    on = desk.on = stage(ScriptedModel([tool_call_reply(("wait", "{}"))]), tools=[tool("wait", wait)])
    running = asyncio.create_task(on.run())
    await began.wait()
    desk.send("first", "second")
    on.loop.interrupt()
    outcome = await running
    assert (outcome.reason, outcome.undelivered) == (EndReason.INTERRUPTED, ("first", "second"))


async def test_messages_of_a_run_that_failed_go_back_to_the_sender() -> None:
    desk = Desk()
    playing(desk, desk.while_saying(ZeroDivisionError("oops"), "hello?"))
    assert desk.on is not None
    outcome = await desk.on.run()
    assert (outcome.reason, outcome.undelivered) == (EndReason.UNEXPECTED_ERROR, ("hello?",))


async def test_a_message_without_a_run_waits_for_the_next_one() -> None:
    """It can be queued."""
    model = ScriptedModel([text_reply("done")])
    on = stage(model)
    on.loop.steer("queued \ud800")
    await on.run("first")
    assert users(list(model.requests[0].messages)) == ["first", "queued ?"]


async def test_a_steered_run_still_has_an_end() -> None:
    """Every answer counts, whoever asked."""
    desk = Desk()
    playing(desk, *(desk.while_saying(text_reply("done"), "again") for _ in range(4)), limits=RunLimits(iterations=4))
    assert desk.on is not None
    outcome = await desk.on.run()
    assert (outcome.reason, outcome.iterations, outcome.undelivered) == (EndReason.MAX_ITERATIONS, 4, ("again",))
