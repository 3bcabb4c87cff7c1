"""Events as a person sees them: each thing once, whatever streamed before."""

from hummingbird.agent.prompts import NO_ANSWER, PROCESS_ENDED
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.screen import BlockKind
from hummingbird.core.events import (
    CallDelta,
    EntryRecorded,
    ReasoningDelta,
    RetryScheduled,
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
from hummingbird.core.messages import PRINTED_UNTIL_THEN, UNKNOWN_OUTCOME, AssistantMessage, NoticeKind, ToolCall
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
    assert screen.lines == ["! It is overloaded, what came until then is above."]


def test_a_retry_is_one_line_with_reason_number_and_waiting_time() -> None:
    failed = ModelFailed(
        call_id="m",
        model="b",
        happening=ModelFailureKind.UNAVAILABLE,
        sentence="429 from anthropic.",
        retry_after_s=8.0,
    )
    retry = RetryScheduled(2, 4, 8.2, "429 from anthropic.")
    switched = ModelSwitched(model="owl", reason="429 from anthropic.")
    screen, _ = told(EntryRecorded(failed), retry, EntryRecorded(failed), EntryRecorded(switched))
    assert screen.lines == [
        "! 429 from anthropic; retry 2 of 4 in 8 s",
        "! 429 from anthropic; going on with owl",
    ]


def test_an_answer_that_is_not_kept_or_was_cut_is_said_to_be() -> None:
    screen, _ = told(
        answered("x", kept=False, finish=FinishReason.MALFORMED), answered("y", finish=FinishReason.LENGTH)
    )
    assert "not kept (malformed)" in screen.text
    assert "stopped early: length" in screen.text


def finished(name: str, text: str, arguments: str = "{}", **more: object) -> list[RunEvent]:
    start = ToolStarted(call_id="t", name=name, arguments=arguments)
    return [EntryRecorded(start), EntryRecorded(ToolFinished(call_id="t", name=name, text=text, **more))]  # type: ignore[arg-type]


def test_a_running_tool_shows_its_last_lines_and_then_what_it_did() -> None:
    start = EntryRecorded(ToolStarted(call_id="t", name="terminal", arguments='{"command":"make ' + "x" * 500 + '"}'))
    screen, narrator = told(CallDelta(0, "terminal", "{"), start, ToolProgress("t", "terminal", "one\ntwo"))
    first, *progress = narrator.activity_lines()
    assert first.startswith("⋯ Run make xxx")
    assert len(first) < 120
    assert progress == ["    one", "    two"]
    assert screen.lines == []
    narrator(
        EntryRecorded(ToolFinished(call_id="t", name="terminal", text="[Exit code 0 after 1 s.]\ndone", seconds=3))
    )
    assert screen.lines[0].startswith("✓ Ran make xxx")
    assert screen.lines[0].endswith("…, 3 s")
    assert screen.lines[1:] == ["    done"]
    assert narrator.activity_lines() == []


def test_what_tools_did_is_said_in_sentences() -> None:
    fenced = '<untrusted tool="terminal" id="0123456789abcdef">\n{}\n</untrusted id="0123456789abcdef">'
    diff = "--- a.py\n+++ a.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"
    cases = [
        ("file_read", '{"path":"a.py"}', "x" * 270, ["✓ Read a.py (270 B)"]),
        ("file_search", '{"pattern":"TODO"}', "[3 matches in 2 files.]\na",
         ["✓ Searched for TODO: 3 matches in 2 files"]),
        ("terminal", '{"command":"pytest -q"}', "[Exit code 1 after 0.2 s.]\n" + fenced.format("1 failed"),
         ["✗ Ran pytest -q: exit code 1", "    1 failed"]),
        ("terminal", '{"command":"seq 9999"}', "[terminal returned 48884 bytes, 9999 lines. All of it is in /x]"
         '\n{"saved_to":"/x","bytes":48884}[Exit code 0 after 0.3 s.]\n1: 1\n2: exit code 3',
         ["✓ Ran seq 9999", "    1: 1\n    2: exit code 3"]),
        ("file_edit", '{"path":"a.py"}', fenced.format(diff),
         ["✓ Edited a.py (+2 −1)", "    @@ -1 +1,2 @@", "    -a", "    +b", "    +c"]),
        ("todo", "{}", "anything", ["✓ Changed the to-do list"]),
        ("mcp_time", '{"zone":"UTC"}', "x" * 1_500, ["✓ Called mcp_time with zone UTC (1.5 kB)"]),
        ("broken", "no json", "x", ["✓ Called broken (1 B)"]),
    ]  # fmt: skip
    for name, arguments, text, lines in cases:
        screen, _ = told(*finished(name, text, arguments))
        assert screen.lines == lines, name


def test_the_tail_of_an_output_is_shown_and_all_of_it_when_asked_for() -> None:
    text = "[Exit code 0 after 0.2 s.]\n" + "\n".join(f"line {number}" for number in range(20))
    screen, narrator = told(*finished("terminal", text, '{"command":"seq 20"}'))
    assert screen.lines == [
        "✓ Ran seq 20",
        "    … 15 more lines (Ctrl-O shows all)",
        "\n".join(f"    line {number}" for number in range(15, 20)),
    ]
    narrator.show_newest()
    assert screen.lines[3] == "▾ Ran seq 20"
    assert "    line 0\n    line 1\n" in screen.lines[4]


def test_a_diff_that_was_asked_about_is_not_shown_twice() -> None:
    asked = ToolDecided(call_id="t", name="file_edit", by="person", decision="allowed", scope="once")
    screen, _ = told(EntryRecorded(asked), *finished("file_edit", "@@ -1 +1 @@\n-a\n+b", '{"path":"a.py"}'))
    assert screen.lines == ["✓ Edited a.py (+1 −1)"]


def test_an_interrupt_is_one_line_that_names_what_was_going_on() -> None:
    start = EntryRecorded(ToolStarted(call_id="t", name="terminal", arguments='{"command":"make"}'))
    ended = EntryRecorded(RunEnded(run_id="r", reason=EndReason.INTERRUPTED, text="", answered=False))
    screen, narrator = told(start, ended)
    narrator.finish_run()
    assert screen.lines == ["■ interrupted during: Run make"]


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
    assert told(EntryRecorded(finished))[0].lines == ["✗ Run: failed", "    No such file."]


def test_notices_switches_and_refusals_are_told() -> None:
    screen, _ = told(
        EntryRecorded(NoticeShown(notice=NoticeKind.SOFT_BUDGET, text="Half of\nthe budget is spent.")),
        EntryRecorded(ModelSwitched(model="owl", reason="the bird is down")),
        StatusMessage("The server birds is gone."),
        EntryRecorded(Compacted(first=1, last=9, summary="s", since=1, until=9, tokens_before=9_000, tokens_after=100)),
        EntryRecorded(CompactionSkipped(reason="too little would be saved")),
        EntryRecorded(ToolDecided(call_id="t", name="terminal", by="rule 3", decision="denied", reason="it writes")),
    )
    assert screen.lines == [
        "· Half of the budget is spent.",
        "! the bird is down; going on with owl",
        "· The server birds is gone.",
        "· 8 messages became a summary, 9,000 → 100 tokens; /compress undo takes it back",
        "· the conversation stays as long as it is: too little would be saved",
        "✗ Run: not allowed by rule 3: it writes",
    ]


def test_a_refused_call_is_a_sentence_about_what_was_wanted() -> None:
    call = ToolCall("t", "file_edit", '{"path":"src/rate.py"}')
    wanted = ModelAnswered(call_id="m", model="b", message=AssistantMessage("", calls=(call,)))
    denied = ToolDecided(call_id="t", name="file_edit", by="plan mode", decision="denied", reason="for the model")
    screen, _ = told(EntryRecorded(wanted), EntryRecorded(denied))
    assert screen.lines == ["✗ Edit src/rate.py: not allowed by plan mode"]


def test_a_wrong_call_is_named_although_it_never_began() -> None:
    call = ToolCall("t", "file_edit", '{"path":"src/rate.py"}')
    message = EntryRecorded(ModelAnswered(call_id="m", model="bird", message=AssistantMessage("", calls=(call,))))
    wrong = ToolFinished(call_id="t", name="file_edit", text="`new` is missing.", outcome=ToolOutcome.MISTAKE)
    screen, _ = told(message, EntryRecorded(wrong))
    assert screen.lines == ["✗ Edit src/rate.py: the call was wrong", "    `new` is missing."]


def test_the_failure_that_ended_a_run_is_told_once_and_in_words() -> None:
    failed = ModelFailed(call_id="m", model="b", happening=ModelFailureKind.UNAVAILABLE, sentence="Nothing answers.")
    end = RunEnded(run_id="r", reason=EndReason.MODEL_ERROR, text="Nothing answers.", sentence="Nothing answers.")
    screen, _ = told(EntryRecorded(failed), EntryRecorded(end))
    assert screen.lines == ["■ model error: Nothing answers."]


def test_after_an_interrupt_nothing_says_that_there_is_no_answer() -> None:
    end = RunEnded(run_id="r", reason=EndReason.INTERRUPTED, text=NO_ANSWER)
    screen, _ = told(EntryRecorded(end))
    assert (screen.lines, screen.blocks) == (["■ interrupted"], [])


def test_a_run_that_did_not_end_well_says_how_and_shows_its_last_words() -> None:
    ended = RunEnded(run_id="r", reason=EndReason.TIME_LIMIT, text="What I know so far.", sentence="An hour is over.")
    screen, _ = told(EntryRecorded(ModelCalled(call_id="m", model="b", messages=1)), EntryRecorded(ended))
    assert screen.lines == ["■ time limit: An hour is over.", "What I know so far."]


def test_a_summary_that_was_asked_for_between_runs_leaves_nobody_thinking() -> None:
    called = ModelCalled(call_id="m", model="b", messages=1, purpose="summary")
    _, narrator = told(EntryRecorded(called))
    assert narrator.activity.startswith("a model writes a summary")
    narrator(answered("short", purpose="summary"))
    assert narrator.activity == ""


def test_an_interrupt_is_one_line_and_what_had_streamed_stands_there_once() -> None:
    notice = NoticeShown(notice=NoticeKind.INTERRUPTED, text="The user interrupted. What you had written: half an ans")
    end = RunEnded(run_id="r", reason=EndReason.INTERRUPTED, text="half an ans", answered=False)
    screen, _ = told(TextDelta("half an ans"), EntryRecorded(notice), EntryRecorded(end))
    assert texts(screen) == ["half an ans"]
    assert screen.lines == ["■ interrupted"]


def test_an_interrupted_command_shows_the_end_of_what_it_had_printed_without_words_for_the_model() -> None:
    output = "\n".join(f"line {number}" for number in range(8))
    text = f'{UNKNOWN_OUTCOME} {PRINTED_UNTIL_THEN}<untrusted tool="terminal" id="a">\n{output}\n</untrusted id="a">'
    screen, _ = told(*finished("terminal", text, '{"command":"make"}', outcome=ToolOutcome.UNKNOWN))
    tail = "\n".join(f"    line {number}" for number in range(3, 8))
    assert screen.lines == ["✗ Run make: interrupted", "    … 3 more lines (Ctrl-O shows all)", tail]


def test_what_an_earlier_process_left_behind_and_calls_that_never_began_are_not_shown() -> None:
    left = ToolFinished(call_id="t", name="terminal", text=UNKNOWN_OUTCOME, outcome=ToolOutcome.UNKNOWN)
    skipped = ToolFinished(call_id="u", name="terminal", text="[not run]", outcome=ToolOutcome.SKIPPED)
    end = RunEnded(run_id="r", reason=EndReason.INTERRUPTED, text="No answer was produced.", sentence=PROCESS_ENDED)
    screen, _ = told(EntryRecorded(left), EntryRecorded(skipped), EntryRecorded(end))
    assert (screen.lines, screen.blocks) == ([], [])
