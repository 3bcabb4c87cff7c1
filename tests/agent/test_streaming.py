"""Deltas are events, and nothing of an interrupted response enters history."""

import asyncio

from hummingbird.core.errors import ProviderConnectionLost
from hummingbird.core.events import CallDelta, EntryRecorded, ReasoningDelta, TextDelta
from hummingbird.core.journal import EndReason, ModelAnswered
from hummingbird.core.messages import AssistantMessage, Notice, NoticeKind, UserMessage
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from tests.agent.stage import CountingTool, stage
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply


class Stalling(ScriptedModel):
    """Streams one word and then waits until it is cancelled; `stubborn` ones answer all the same."""

    def __init__(self, stubborn: bool = False) -> None:
        super().__init__([])
        self.streaming = asyncio.Event()
        self.leave = asyncio.Event()
        self._stubborn = stubborn

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        self.requests.append(request)
        if listen is not None:
            listen(TextDelta("half"))
        self.streaming.set()
        try:
            await self.leave.wait()
        except asyncio.CancelledError:
            if not self._stubborn:
                raise
        if listen is not None:
            listen(TextDelta("late"))
        return text_reply("the whole answer")


async def test_text_reasoning_and_calls_are_told_as_they_come() -> None:
    """Before the entry that settles the call."""
    model = ScriptedModel([tool_call_reply(("count", '{"a":1}'), text="let me"), text_reply("the end", reasoning="hm")])
    on = stage(model, tools=[CountingTool()], streaming=True)
    await on.run()
    deltas = [event for event in on.seen if not isinstance(event, EntryRecorded)]
    assert deltas == [
        TextDelta("let"),
        TextDelta("me"),
        CallDelta(0, "count", '{"a":1}'),
        ReasoningDelta("hm"),
        TextDelta("the"),
        TextDelta("end"),
    ]
    answered = [isinstance(e, EntryRecorded) and isinstance(e.entry, ModelAnswered) for e in on.seen]
    assert on.seen.index(deltas[2]) < answered.index(True)


async def test_without_streaming_there_are_no_deltas() -> None:
    on = stage(ScriptedModel([text_reply("done")]))
    await on.run()
    assert all(isinstance(event, EntryRecorded) for event in on.seen)


async def test_observers_see_every_entry_in_order() -> None:
    """Progress leaves the loop as journal entries."""
    on = stage(ScriptedModel([tool_call_reply(("count", "{}")), text_reply("done")]), tools=[CountingTool()])
    await on.run()
    assert [event.entry for event in on.seen if isinstance(event, EntryRecorded)] == list(on.journal.entries())


async def test_a_response_that_broke_off_is_not_in_history() -> None:
    """The retry starts from the same conversation."""

    class Breaking(ScriptedModel):
        async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
            if not self.requests and listen is not None:
                self.requests.append(request)
                listen(TextDelta("half a"))
                raise ProviderConnectionLost("reset")
            return await super().generate(request, listen)

    model = Breaking([text_reply("whole")])
    on = stage(model, streaming=True)
    outcome = await on.run()
    assert list(outcome.messages) == [UserMessage("go"), AssistantMessage("whole")]
    assert list(model.requests[0].messages) == list(model.requests[1].messages)


async def test_beginning_of_an_interrupted_response_is_kept_and_marked() -> None:
    """A person saw it, so it is the run's text; the model reads in a notice that it stopped there."""
    model = Stalling()
    on = stage(model, streaming=True)
    running = asyncio.create_task(on.run())
    await model.streaming.wait()
    on.loop.interrupt()
    outcome = await running
    assert outcome.reason is EndReason.INTERRUPTED
    assert [type(m) for m in outcome.messages] == [UserMessage, Notice]
    assert (outcome.text, outcome.answered) == ("half", False)
    (marked,) = (message for message in outcome.messages if isinstance(message, Notice))
    assert marked.kind is NoticeKind.INTERRUPTED
    assert marked.text.endswith("before it was finished. What you had written until then:\nhalf")


async def test_a_model_that_answers_after_the_interrupt_is_not_heard_any_more() -> None:
    """It swallowed the cancellation; neither history nor observers get its words."""
    model = Stalling(stubborn=True)
    on = stage(model, streaming=True)
    running = asyncio.create_task(on.run())
    await model.streaming.wait()
    on.loop.interrupt()
    outcome = await running
    assert outcome.reason is EndReason.INTERRUPTED
    assert [m.kind for m in outcome.messages if isinstance(m, Notice)] == [NoticeKind.INTERRUPTED]
    assert on.written(ModelAnswered) == []
    assert TextDelta("late") not in on.seen
