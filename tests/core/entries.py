"""Strategies for the entries of a journal, one for each kind, with any content that can be stored."""

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from hummingbird.core.journal import (
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    Delegated,
    EchoesDropped,
    EndReason,
    FinishReason,
    HistoryImported,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    ResultsWithheld,
    RunEnded,
    RunStarted,
    SessionOpened,
    SessionRenamed,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.messages import AssistantMessage, NoticeKind, ProviderEcho, ToolCall
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.core.usage import Charge, TokenUsage
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict, JobJudgement, VerdictReason

MARK = "‽"  # in every notice and in no other text, so that a notice can be found wherever it went

characters = st.characters(exclude_categories=["Cs"], exclude_characters=MARK)
texts = st.text(characters, max_size=12) | st.sampled_from(
    ["", " ", "\x00\x1f\x7f", "a\nb\r\nc\u2028d", '"\\"{}', "```\n````", "ü😀\ufeff", "x" * 5_000]
)
names = st.sampled_from(["read_file", "search", "shell", "`odd` name"])
notice_texts = texts.map(lambda text: f"{MARK}{text}")
times = st.floats(0, 4e9, allow_nan=False)
counts = st.integers(0, 10**12)
usages = st.builds(TokenUsage, counts, counts, counts, counts, counts)
prices = st.none() | st.decimals(0, 1_000, places=9) | st.just(Decimal("1E-7"))
charges = st.builds(Charge, names, texts, texts, st.none() | usages, prices)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
json_objects = st.dictionaries(texts, json_values, max_size=3)

ids = st.sampled_from(["a", "b", "c", 'ü"\n'])  # few, so that they meet
tools = st.lists(st.builds(ToolDefinition, names, texts, json_objects), max_size=2).map(tuple)
echoes = st.builds(ProviderEcho, st.sampled_from(["anthropic", "gemini"]), names, json_values)
calls = st.lists(st.builds(ToolCall, ids, names, texts), max_size=3).map(tuple)
answers = st.builds(AssistantMessage, texts, texts, calls, st.none() | echoes, st.booleans())

chat_parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}) | json_values, max_size=2)
chat_calls = st.lists(
    json_values
    | st.fixed_dictionaries(
        {"id": ids, "function": st.fixed_dictionaries({"name": names, "arguments": texts | json_values})}
    ),
    max_size=3,
)
chat_messages: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "content": texts | chat_parts}),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": texts}, optional={"tool_calls": chat_calls}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.none() | texts, "tool_calls": chat_calls},
        optional={"reasoning": texts | scalars},
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": ids, "content": texts}, optional={"name": names}),
    st.fixed_dictionaries(
        {
            "role": st.just("system"),
            "name": st.sampled_from([f"notice_{kind}" for kind in NoticeKind]),
            "content": notice_texts,
        }
    ),
)

origins = st.sampled_from(FailureOrigin)
reasons = st.builds(
    VerdictReason,
    sign=names,
    speaks_for=origins,
    text=texts | st.just("It names {0} and {1}."),
    names=st.lists(texts, max_size=2).map(tuple),
)
judgements = st.builds(
    JobJudgement,
    job=texts,
    origin=origins,
    sure=st.floats(0, 1),
    reasons=st.lists(reasons, max_size=2).map(tuple),
    fingerprints=st.lists(texts, max_size=2).map(tuple),
    job_id=counts,
)
verdicts = st.builds(
    FailureVerdict,
    origin=origins,
    sure=st.floats(0, 1),
    jobs=st.lists(judgements, max_size=2).map(tuple),
    unseen=st.lists(texts, max_size=2).map(tuple),
)

KINDS: dict[type[JournalEntry], st.SearchStrategy[JournalEntry]] = {
    SessionOpened: st.builds(SessionOpened, at=times, session_id=ids, system=texts, format=st.just(1), tools=tools),
    RunStarted: st.builds(RunStarted, at=times, run_id=ids, model=names, resumed=st.booleans()),
    HistoryImported: st.builds(
        HistoryImported,
        at=times,
        messages=st.lists(chat_messages | json_objects, max_size=5).map(tuple),
        repairs=st.lists(texts, max_size=2).map(tuple),
    ),
    UserSaid: st.builds(UserSaid, at=times, text=texts, source=st.sampled_from(MessageSource)),
    NoticeShown: st.builds(
        NoticeShown,
        at=times,
        notice=st.sampled_from(NoticeKind),
        text=notice_texts,
        about=st.sampled_from(EndReason).map(str),
    ),
    VerdictRecorded: st.builds(VerdictRecorded, at=times, run_id=ids, verdict=verdicts),
    ModelCalled: st.builds(
        ModelCalled,
        at=times,
        call_id=ids,
        model=names,
        messages=st.integers(0, 40),
        attempt=st.integers(1, 5),
        purpose=st.sampled_from(["turn", "title"]),
        final=st.booleans(),
        tools_disabled=st.booleans(),
    ),
    ModelAnswered: st.builds(
        ModelAnswered,
        at=times,
        call_id=ids,
        model=names,
        message=answers,
        finish=st.sampled_from(FinishReason),
        usage=usages,
        cost_usd=prices,
        kept=st.booleans(),
        raw_usage=json_objects,
        purpose=st.sampled_from(["turn", "turn", "title"]),
    ),
    ModelFailed: st.builds(
        ModelFailed,
        at=times,
        call_id=ids,
        model=names,
        happening=st.sampled_from(ModelFailureKind),
        sentence=texts,
        retry_after_s=st.none() | times,
    ),
    Compacted: st.builds(
        Compacted,
        at=times,
        first=st.integers(-2, 12),
        last=st.integers(-2, 12),
        summary=notice_texts,
        since=st.integers(0, 20),
        until=st.integers(0, 20),
        tokens_before=counts,
        tokens_after=counts,
    ),
    CompactionSkipped: st.builds(CompactionSkipped, at=times, reason=texts, tokens=counts),
    CompactionUndone: st.builds(CompactionUndone, at=times),
    SessionRenamed: st.builds(SessionRenamed, at=times, title=texts),
    TurnUndone: st.builds(TurnUndone, at=times, text=texts),
    ToolStarted: st.builds(ToolStarted, at=times, call_id=ids, name=names, arguments=texts),
    ToolFinished: st.builds(
        ToolFinished,
        at=times,
        call_id=ids,
        name=names,
        text=texts,
        outcome=st.sampled_from(ToolOutcome),
        seconds=times,
        charges=st.lists(charges, max_size=2).map(tuple),
    ),
    ToolDecided: st.builds(ToolDecided, at=times, call_id=ids, name=names, by=texts, decision=texts, reason=texts),
    ResultsWithheld: st.builds(ResultsWithheld, at=times, call_ids=st.lists(ids, max_size=3).map(tuple)),
    ModelSwitched: st.builds(ModelSwitched, at=times, model=names, reason=texts),
    EchoesDropped: st.builds(EchoesDropped, at=times, reason=texts),
    PrefixChanged: st.builds(PrefixChanged, at=times, system=texts, tools=tools, reason=texts),
    RunEnded: st.builds(
        RunEnded,
        at=times,
        run_id=ids,
        reason=st.sampled_from(EndReason),
        text=texts,
        sentence=texts,
        answered=st.booleans(),
    ),
}

KINDS[Delegated] = st.builds(
    Delegated,
    at=times,
    call_id=ids,
    task=st.integers(1, 2_000),
    entry=st.one_of(KINDS[ToolDecided], KINDS[ToolStarted], KINDS[ToolFinished]),
    arguments=texts,
)

entries: st.SearchStrategy[JournalEntry] = st.one_of(*KINDS.values())
