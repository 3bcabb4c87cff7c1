"""Events as a person sees them: each thing once, whatever streamed before."""

from hummingbird.chat.narrator import Narrator
from hummingbird.chat.screen import BlockKind
from hummingbird.core.events import (
    CallDelta,
    EntryRecorded,
    ReasoningDelta,
    RunEvent,
    StatusMessage,
    TextDelta,
    ToolProgress,
)
from hummingbird.core.journal import (
    Compacted,
    CompactionSkipped,
    EndReason,
    FinishReason,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    NoticeShown,
    RunEnded,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
)
from hummingbird.core.messages import AssistantMessage, NoticeKind
from tests.chat.noted_screen import NotedScreen


def answered(text: str, **more: object) -> EntryRecorded:
    entry = ModelAnswered(call_id="m", model="bird", message=AssistantMessage(text), **more)  # type: ignore[arg-type]
    return EntryRecorded(entry)


def told(*events: RunEvent, verbose: bool = False) -> tuple[NotedScreen, Narrator]:
    screen = NotedScreen()
    narrator = Narrator(screen, clock=lambda: 5.0)
    narrator.verbose = verbose
    for event in events:
        narrator(event)
    return screen, narrator


def texts(screen: NotedScreen) -> list[str]:
    return [block.text for block in screen.blocks if block.kind is BlockKind.MARKDOWN]


def test_an_answer_is_shown_once_whether_it_streamed_wholly_partly_or_not_at_all() -> None:
    end = EntryRecorded(RunEnded(run_id="r", reason=EndReason.COMPLETED, text="one\n\ntwo", answered=True))
    for streamed in ("one\n\ntwo", "one\n\nt", ""):
        screen, narrator = told(TextDelta(streamed), answered("one\n\ntwo"), end)
        assert texts(screen) == ["one", "two"]
        assert screen.lines == []
        assert narrator.activity == ""


def test_an_answer_that_broke_off_is_said_to_have_and_its_second_try_stands_alone() -> None:
    failed = ModelFailed(
        call_id="m", model="b", happening=ModelFailureKind.UNAVAILABLE, sentence="It is overloaded.", retry_after_s=7.0
    )
    screen, _ = told(
        TextDelta("half an ans"), EntryRecorded(failed), TextDelta("a whole answer"), answered("a whole answer")
    )
    assert texts(screen) == ["half an ans", "a whole answer"]
    assert screen.lines == ["! It is overloaded. (it wants 7 s of rest) What came until then is above."]


def test_an_answer_that_is_not_kept_or_was_cut_is_said_to_be() -> None:
    screen, _ = told(
        answered("x", kept=False, finish=FinishReason.MALFORMED), answered("y", finish=FinishReason.LENGTH)
    )
    assert "not kept (malformed)" in screen.text
    assert "stopped early: length" in screen.text


def test_a_tool_has_a_line_when_it_starts_progress_while_it_runs_and_a_line_when_it_is_done() -> None:
    start = EntryRecorded(ToolStarted(call_id="t", name="terminal", arguments='{"command":"' + "x" * 500))
    screen, narrator = told(CallDelta(0, "terminal", "{"), start, ToolProgress("t", "terminal", "half way"))
    assert narrator.activity_lines() == ["⋯ terminal 0s: half way"]
    assert len(screen.lines[0]) < 110
    narrator(EntryRecorded(ToolFinished(call_id="t", name="terminal", text="é\nb", seconds=1.25)))
    assert screen.lines[-1] == "  ✓ terminal: ok, 4 bytes, 1.2 s"
    assert narrator.activity_lines() == []


def test_a_call_that_takes_shape_is_seen() -> None:
    _, narrator = told(CallDelta(0, "file_write", '{"a'), CallDelta(0, "", "b" * 2_000))
    assert narrator.activity_lines() == ["⋯ writes a call of file_write, 2,003 characters"]


def test_verbose_shows_results_and_reasoning_and_says_how_much_it_leaves_out() -> None:
    finished = EntryRecorded(ToolFinished(call_id="t", name="terminal", text="\n".join(map(str, range(500)))))
    quiet, _ = told(ReasoningDelta("because\n\n"), finished)
    loud, _ = told(ReasoningDelta("because\n\n"), finished, verbose=True)
    assert "because" not in quiet.text
    assert "    199" not in quiet.text
    assert "because" in loud.text
    assert "    199\n    … 300 more lines" in loud.text


def test_a_failed_tool_says_why_without_being_asked() -> None:
    finished = ToolFinished(call_id="t", name="terminal", text="No such file.", outcome=ToolOutcome.ERROR)
    assert told(EntryRecorded(finished))[0].lines == ["  ✗ terminal: error, 13 bytes, 0.0 s", "    No such file."]


def test_notices_switches_and_refusals_are_told() -> None:
    screen, _ = told(
        EntryRecorded(NoticeShown(notice=NoticeKind.SOFT_BUDGET, text="Half of\nthe budget is spent.")),
        EntryRecorded(ModelSwitched(model="owl", reason="the bird is down")),
        StatusMessage("The server birds is gone."),
        EntryRecorded(Compacted(first=1, last=9, summary="s", since=1, until=9, tokens_before=9_000, tokens_after=100)),
        EntryRecorded(CompactionSkipped(reason="too little would be saved")),
        EntryRecorded(ToolDecided(call_id="t", name="terminal", by="plan mode", decision="denied", reason="it writes")),
    )
    assert screen.lines == [
        "· Half of the budget is spent.",
        "! going on with owl: the bird is down",
        "· The server birds is gone.",
        "· 8 messages became a summary, 9,000 → 100 tokens; /compress undo takes it back",
        "· the conversation stays as long as it is: too little would be saved",
        "  ✗ terminal is not allowed by plan mode: it writes",
    ]


def test_a_run_that_did_not_end_well_says_how_and_shows_its_last_words() -> None:
    ended = RunEnded(run_id="r", reason=EndReason.TIME_LIMIT, text="What I know so far.", sentence="An hour is over.")
    screen, _ = told(EntryRecorded(ModelCalled(call_id="m", model="b", messages=1)), EntryRecorded(ended))
    assert screen.lines == ["■ time_limit: An hour is over.", "What I know so far."]
