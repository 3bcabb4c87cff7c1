"""What a session is, seen from outside: ids, what it was begun for, and its summary."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.background import RunBackground
from hummingbird.core.context_json import migrate_context_json
from hummingbird.core.errors import UsageError
from hummingbird.core.journal import (
    EndReason,
    HistoryImported,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelCalled,
    ModelSwitched,
    RunEnded,
    RunStarted,
    SessionOpened,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.sessions import (
    SESSION_ID_CHARS,
    SUMMARY_CHARS,
    FailedJob,
    SessionSubject,
    SessionSummary,
    check_session_id,
    dump_summary,
    find_subject,
    load_summary,
    summarise_session,
)
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict, JobJudgement, ObservedFailure
from tests.core.journals import journals

OPENED = SessionOpened(at=10.0, session_id="abc", system="Be brief.", format=JOURNAL_FORMAT)
ORDER = {"workflow": "w", "project": "Acme/Widgets", "mr_iid": 7, "sha": "f00"}
ABOUT = SessionSubject(**ORDER)  # type: ignore[arg-type] # each is of its kind


def ordered(said: object) -> UserSaid:
    return UserSaid(text=said if isinstance(said, str) else json.dumps(said), source=MessageSource.ORDER)


@pytest.mark.parametrize("session_id", ["a", "0", "A-b_9", "x" * SESSION_ID_CHARS])
def test_an_id_is_letters_digits_and_two_marks(session_id: str) -> None:
    assert check_session_id(session_id) == session_id


@pytest.mark.parametrize(
    "session_id",
    ["", "-", "..", "a/b", "../a", "a.b", "a b", "a\n", "a\0", "ä", "²", "٣", "x" * (SESSION_ID_CHARS + 1)],
)
def test_whatever_could_lead_elsewhere_is_no_id(session_id: str) -> None:
    """It becomes a file's name and a part of an address; the sentence itself is one line of plain letters."""
    with pytest.raises(UsageError) as refused:
        check_session_id(session_id)
    assert str(refused.value).isprintable()
    assert str(refused.value).isascii()
    assert len(str(refused.value)) < 250


def test_a_session_is_about_what_its_first_order_says() -> None:
    """Neither what a person said before nor what was ordered later."""
    other = ordered({**ORDER, "mr_iid": 8})
    assert find_subject([OPENED, UserSaid(text='{"mr_iid": 9}'), ordered(ORDER), other]) == ABOUT


@pytest.mark.parametrize("said", ["Hello!", "[1]", '"x"', "7", "", "[" * 100_000, "{}", '{"mr_iid": "7", "sha": 5}'])
def test_what_an_order_does_not_say_in_its_kind_is_not_known(said: str) -> None:
    assert find_subject([OPENED, ordered(said)]) == SessionSubject()


def test_a_number_is_a_number_and_no_truth() -> None:
    assert find_subject([ordered({**ORDER, "mr_iid": True})]).mr_iid == 0


def test_a_history_of_an_older_format_calls_the_merge_request_iid() -> None:
    """S3: what goes on from there is answered where it began."""
    said = {"workflow": "w", "project": "Acme/Widgets", "iid": 7, "sha": "f00"}
    content = json.dumps([{"role": "user", "content": json.dumps(said)}, {"role": "assistant", "content": "No."}])
    assert find_subject(migrate_context_json(content.encode(), "abc")) == ABOUT
    assert find_subject([ordered({**said, "mr_iid": 8})]).mr_iid == 8, "the newer word counts"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": json.dumps(ORDER)}],
        [{"role": "user", "content": [{"text": json.dumps(ORDER)}]}],
        [{"role": "user", "content": "Hello!"}, {"role": "user", "content": json.dumps(ORDER)}],
    ],
)
def test_only_what_came_first_in_a_history_is_an_order(messages: list[dict[str, object]]) -> None:
    """A model's words, or somebody's later ones, do not say whose session it is."""
    assert find_subject([OPENED, HistoryImported(messages=tuple(messages))]) == SessionSubject()


@pytest.mark.parametrize(
    ("project", "mr_iid", "same"),
    [("Acme/Widgets", 7, True), ("acme/widgets", 7, True), ("acme/widgets", 8, False), ("acme/other", 7, False)],
)
def test_a_session_is_of_the_merge_request_it_was_begun_for(project: str, mr_iid: int, same: bool) -> None:
    """GitLab's paths know no case."""
    assert ABOUT.is_for(project, mr_iid) is same


@pytest.mark.parametrize("unknown", [SessionSubject(), SessionSubject(project="a/b"), SessionSubject(mr_iid=7)])
def test_what_nobody_knows_is_no_yes(unknown: SessionSubject) -> None:
    assert not unknown.is_for(unknown.project, unknown.mr_iid)


def ran(*more: JournalEntry) -> list[JournalEntry]:
    return [
        OPENED,
        RunStarted(at=11.0, run_id="r", model="m-1"),
        ordered(ORDER),
        ModelSwitched(model="m-2", reason="away"),
        ModelCalled(at=12.0, call_id="c", model="m-2", messages=1),
        ModelAnswered(
            at=13.0, call_id="c", model="m-2", message=AssistantMessage(text="Done."), cost_usd=Decimal("0.25")
        ),
        *more,
    ]


def ended(reason: EndReason) -> RunEnded:
    return RunEnded(at=20.0, run_id="r", reason=reason, text="Done.", answered=True)


def test_a_summary_says_what_a_list_shows() -> None:
    assert summarise_session(ran(ended(EndReason.COMPLETED)), "unused") == SessionSummary(
        session_id="abc",
        about=ABOUT,
        title="w on Acme/Widgets!7",
        model="m-2",
        began_at=10.0,
        changed_at=20.0,
        runs=1,
        answers=1,
        entries=7,
        reason="completed",
        usd=0.25,
        last_words="Done.",
        seconds=9.0,
        answer_s=9.0,
    )


def test_a_summary_says_what_failed_and_how_long_the_first_answer_took() -> None:
    seen = ObservedFailure(fingerprint="f2", kind="test", class_="TestFailure", title="assert 1 == 2")
    background = RunBackground(cause="pipeline", asked_at=5.0, title="A title", branch="b", failures=(seen,))
    judged = (
        JobJudgement(job="test", origin=FailureOrigin.FLAKY, job_id=9, fingerprints=("f1", "f2")),
        JobJudgement(job="lint", origin=FailureOrigin.UNKNOWN, fingerprints=("f3",)),
    )
    made = summarise_session(
        [
            OPENED,
            RunStarted(at=11.0, run_id="r", model="m", background=background),
            VerdictRecorded(run_id="r", verdict=FailureVerdict(origin=FailureOrigin.UNKNOWN, jobs=judged)),
            ended(EndReason.COMPLETED),
            RunStarted(at=30.0, run_id="s", model="m", background=RunBackground(cause="reply", asked_at=29.0)),
            RunEnded(at=40.0, run_id="s", reason=EndReason.COMPLETED, text="", answered=True),
        ]
    )
    assert (made.cause, made.request, made.branch, made.answer_s) == ("pipeline", "A title", "b", 15.0)
    assert made.jobs == (
        FailedJob("test", 9, "flaky", "f2", "assert 1 == 2", "TestFailure"),
        FailedJob("lint", 0, "unknown", "f3"),
    )


def test_a_run_that_began_again_has_not_ended() -> None:
    """Its reason is that of the last run, and a price that nobody knows is counted."""
    again = RunStarted(run_id="s", model="m-3")
    more = ModelCalled(call_id="d", model="m-3", messages=1)
    answer = ModelAnswered(call_id="d", model="m-3", message=AssistantMessage(text="?"))
    made = summarise_session(ran(ended(EndReason.COMPLETED), again, more, answer))
    assert (made.state, made.runs, made.answers, made.model) == ("unfinished", 2, 2, "m-3")
    assert (made.usd, made.unpriced) == (0.25, 1)


def test_states_are_words() -> None:
    assert summarise_session(ran(ended(EndReason.TIME_LIMIT))).state == EndReason.TIME_LIMIT.value
    assert summarise_session(ran()).state == "unfinished"
    assert summarise_session([OPENED]).state == "empty"
    assert summarise_session([], "abc") == SessionSummary(session_id="abc")


@pytest.mark.parametrize(
    ("entries", "title"),
    [
        ([OPENED, UserSaid(text="Why \n is\tit red?"), UserSaid(text="And?")], "Why is it red?"),
        ([OPENED, ordered({"project": "a/b"})], "a/b"),
        ([OPENED, ordered({"project": "a/b", "mr_iid": 7}), UserSaid(text="Why?")], "a/b!7"),
        ([OPENED, ordered("Have a look.")], ""),
    ],
)
def test_a_title_is_what_it_was_begun_for_or_what_a_person_said_first(entries: list[JournalEntry], title: str) -> None:
    assert summarise_session(entries).title == title


@given(journals)
def test_every_journal_has_a_summary_that_can_be_kept_and_read_again(entries: list[JournalEntry]) -> None:
    made = summarise_session(entries, "abc")
    assert load_summary(dump_summary(made)) == made
    assert len(made.title) <= SUMMARY_CHARS
    assert "\n" not in made.title
    assert made.entries == len(entries)


@pytest.mark.parametrize("bad", ["\\ud800", "\\u0000", "x" * 10_000])
def test_what_somebody_hid_in_an_order_is_in_nobodys_way(bad: str) -> None:
    """JSON can say what UTF-8 cannot hold; a session is stored nevertheless."""
    content = f'{{"project": "a/{bad}", "workflow": "{bad}", "mr_iid": 7}}'
    made = summarise_session([OPENED, HistoryImported(messages=({"role": "user", "content": content},))])
    assert load_summary(dump_summary(made)) == made
    assert made.about.mr_iid == 7


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"{",
        b"[]",
        b"null",
        b"7",
        b"{}",
        b"\xff\xfe",
        b'{"session_id":7}',
        b'{"session_id":"\xff"}',
        b'{"session_id":"a","runs":"many"}',
        b"[" * 100_000,
        dump_summary(SessionSummary("abc"))[:-4],
    ],
)
def test_a_damaged_summary_is_none(content: bytes) -> None:
    """It can be made again."""
    assert load_summary(content) is None


@given(st.binary(max_size=200))
def test_whatever_bytes_there_are_reading_a_summary_never_raises(content: bytes) -> None:
    load_summary(content)
    load_summary(b'{"session_id":"' + content)


def test_a_summary_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    made = summarise_session(ran())
    newer = json.dumps({**json.loads(dump_summary(made)), "mood": "bright"})
    assert load_summary(newer.encode()) == made
