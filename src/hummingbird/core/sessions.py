"""Describe a session from outside: the names of its files, its subject, its summary, and the texts said in it.

All of it is computed from the journal.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from hummingbird.core.background import RunBackground
from hummingbird.core.errors import UsageError
from hummingbird.core.journal import (
    TURN,
    Delegated,
    HistoryImported,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelSwitched,
    RunEnded,
    RunStarted,
    SessionOpened,
    SessionRenamed,
    ToolFinished,
    ToolStarted,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.json_codec import InvalidJson, JsonDecoder, decode_lenient_json
from hummingbird.core.messages import AssistantMessage, Message, ToolMessage, UserMessage, messages_from_chat
from hummingbird.core.projections import UsageLedger
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.verdicts import FailureVerdict, render_verdict

# Size of a session
SESSION_ID_CHARS = 128
JOURNAL_BYTES = 256 * 1024 * 1024  # several hundred thousand entries; a run that needs more has gone wrong
SEGMENT_BYTES = 128 * 1024  # size at which the tail of a journal in a bucket is sealed; each commit rewrites the tail
SEGMENTS_AT_ONCE = 16  # sealed segments that are read at the same time
SESSIONS_AT_ONCE = 4  # sessions that are read for the index at the same time: each may be as long as a journal can be
CONTEXT_BYTES = 64 * 1024 * 1024  # largest context.json that is migrated
SUMMARY_CHARS = 120  # length of a session's title
JOBS_SUMMARISED = 30  # failed jobs in a summary

# Lease of a session in a bucket. Only waiting times depend on these: every write there is conditional.
LEASE_S = 60.0  # how long a holder that gives no sign of life keeps the lease
LEASE_BEAT_S = 15.0  # between two heartbeats
COMMIT_S = 30.0  # for a bucket to take a commit, including retries, before the run goes on without it
COMMIT_REST_S = 60.0  # before a bucket that failed is tried again

# Buckets
OBJECT_WHOLE_S = 6 * 3600.0  # to read one response to its end: its reader may be slow
OBJECT_PIECE_BYTES = 5 * 1024 * 1024  # the smallest part that S3 and Google take; 10,000 of them are 48 GiB
OBJECT_PIECES_AT_ONCE = 4  # parts that are uploaded at the same time; each is held in memory until it has arrived
OBJECT_CHUNK_BYTES = 1024 * 1024
GOOGLE_PAUSE_S = 1.0  # before Google is asked again: it allows one write per second to the same name
GOOGLE_PAUSE_CAP_S = 8.0

# State that hosts share besides sessions, in small objects of a bucket that every host may change
SHARED_S = 15.0  # for one change, including all lost races: a run waits for it
SHARED_TRIES = 2  # writes that fail while reading works, before giving up
SHARED_REST_S = 30.0  # how long nobody waits for a bucket that has just failed; spending is added later
SHARED_PAUSE_S = 0.02  # longest pause before the first retry of a change
SHARED_PAUSE_CAP_S = 1.0
SHARED_HELD = 32  # objects of known failures that a process keeps in memory, so that a change is one request
SPENDERS = 128  # processes whose spending on one day is recorded separately; older ones are merged
SPENDING_BYTES = 64 * 1024  # for one day of a project
SPENDING_FRESH_S = 60.0  # how long the last value read holds while the bucket is unavailable
SPENDING_DAYS = 40  # days that are kept

# The index
SEARCH_HITS = 20
FRESH_S = 3.0  # how long a search waits for the index update, which then continues in the background
SEARCH_WORDS = 32
SNIPPET_TOKENS = 24
INDEXED_CHARS = 64 * 1024  # of one entry
SEARCH_CHARS = 4096  # characters of a query that are read
SEARCH_WORD_CHARS = 200  # characters of one word of a query
SEARCH_PREFIX = 3  # letters that a word prefix needs; collecting all words with a shorter one would take too long
SEARCH_ASKED = 4  # words of a query that are searched, the longest ones
SEARCH_RANKED = 600  # texts that are ranked: those of the newest sessions, if there are more
SEARCH_LOOKED_AT = 1200  # texts of one session that are looked at; the rest of it is skipped
SEARCH_PASSED = 10_000  # texts that are skipped one by one before the search restarts behind the session
SEARCH_LOOKS = 3  # how often the search restarts; at most SEARCH_LOOKED_AT times this many texts are ranked
SEARCH_PER_SESSION = 3  # hits per session, so that one session does not hide the others

JOURNAL = "journal.jsonl"
CONTEXT = "context.json"
TRANSCRIPT = "transcript.md"
ARCHIVE = "sandbox.tar.gz"
METADATA = "metadata.json"


def is_session_id(name: str) -> bool:
    """Tell whether a name can be a session id."""
    plain = name.replace("-", "").replace("_", "")
    return plain.isascii() and plain.isalnum() and len(name) <= SESSION_ID_CHARS


def check_session_id(session_id: str) -> str:
    """Return the id unchanged.

    Raises UsageError for an invalid one: an id is used as a file name and in URLs.
    """
    if not is_session_id(session_id):
        raise UsageError(
            f"Session id {shorten_line(session_id, 80)!a} is not usable: at most {SESSION_ID_CHARS} letters, digits, - "
            "and _."
        )
    return session_id


class SessionSubject(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a session was started for, by its first order or by the person who started a conversation.

    Unknown fields are empty or 0. `folder` is the workspace of a chat.
    """

    workflow: str = ""
    project: str = ""
    mr_iid: int = 0
    sha: str = ""
    folder: str = ""
    pipeline_id: int = 0

    def is_for(self, project: str, mr_iid: int) -> bool:
        """Tell whether the session was started for that very merge request; False when that is unknown."""
        begun, asked = (self.project.casefold(), self.mr_iid), (project.casefold(), mr_iid)
        return bool(self.project and self.mr_iid) and begun == asked


def find_subject(entries: Sequence[JournalEntry]) -> SessionSubject:
    """Return what a session was started for."""
    ordered = _subject_from_order(entries)
    return _subject_from_opening(entries) if ordered == SessionSubject() else ordered


def _subject_from_opening(entries: Iterable[JournalEntry]) -> SessionSubject:
    opened = next((entry for entry in entries if isinstance(entry, SessionOpened)), None)
    return (
        SessionSubject()
        if opened is None
        else SessionSubject(
            replace_surrogates(opened.workflow),
            replace_surrogates(opened.project),
            folder=replace_surrogates(opened.folder),
        )
    )


def _subject_from_order(entries: Iterable[JournalEntry]) -> SessionSubject:
    try:
        said = decode_lenient_json(next(_iter_order_texts(entries), ""))
    except InvalidJson:
        return SessionSubject()
    return SessionSubject(**_parse_order_fields(said)) if isinstance(said, dict) else SessionSubject()


def _iter_order_texts(entries: Iterable[JournalEntry]) -> Iterator[str]:
    """Yield the texts of orders, and the first message of an imported history."""
    for entry in entries:
        if isinstance(entry, UserSaid) and entry.source is MessageSource.ORDER:
            yield entry.text
        elif isinstance(entry, HistoryImported):
            said = (one.get("content") for one in entry.messages[:1] if one.get("role") == "user")
            yield from (one for one in said if isinstance(one, str))


def _parse_order_fields(said: dict[str, Any]) -> dict[str, Any]:
    kinds = {"workflow": str, "project": str, "mr_iid": int, "sha": str, "pipeline_id": int}
    named = {"mr_iid": said.get("iid"), **said}  # sessions of older formats call it iid
    found = {name: named[name] for name, kind in kinds.items() if type(named.get(name)) is kind}
    return {name: replace_surrogates(value) if isinstance(value, str) else value for name, value in found.items()}


class FailedJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """A failed job as the rules judged it, with its likeliest failure; `title` is the line that says what happened."""

    name: str
    job_id: int = 0
    origin: str = ""
    fingerprint: str = ""
    title: str = ""
    class_: str = ""


class SessionSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session in a few words, for lists.

    `title` is what a person called it, else the subject of its order, else the first thing that a person said.
    `last_words` is how its last answer or message begins. `reason` is why its last run ended, empty while it has not.
    `usd` is the known part of its cost; `tokens` counts input tokens, `cached` those of them that came from a cache.
    `verdict` is the origin that the rules judged last, empty if they judged nothing, `jobs` what failed. `seconds` is
    how long its runs took together, without one that has not ended; `answer_s` is the time from the event to the first
    answer. `cause`, `request` (the title of the merge request) and `branch` are those of the first run.
    """

    session_id: str
    about: SessionSubject = SessionSubject()
    title: str = ""
    model: str = ""
    began_at: float = 0.0
    changed_at: float = 0.0
    runs: int = 0
    answers: int = 0
    entries: int = 0
    reason: str = ""
    usd: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    cached: int = 0
    last_words: str = ""
    verdict: str = ""
    seconds: float = 0.0
    output: int = 0
    cause: str = ""
    request: str = ""
    branch: str = ""
    answer_s: float = 0.0
    jobs: tuple[FailedJob, ...] = ()

    @property
    def state(self) -> str:
        """Return why the last run ended, or that the session is unfinished or empty."""
        return self.reason or ("unfinished" if self.runs else "empty")


def summarise_session(entries: Iterable[JournalEntry], session_id: str = "") -> SessionSummary:
    """Summarise a journal; `session_id` is for a session that has no entries yet."""
    found, ledger = list(entries), UsageLedger()
    model = reason = said = renamed = last = verdict = ""
    runs = answers = 0
    began = seconds = answer_s = 0.0
    jobs: tuple[FailedJob, ...] = ()
    background = RunBackground()
    for entry in found:
        ledger.apply(entry)
        match entry:
            case SessionOpened():
                session_id = entry.session_id
            case RunStarted():
                background = background if runs else entry.background or background
                model, reason, runs, began = entry.model, "", runs + 1, entry.at
            case ModelSwitched():
                model = entry.model
            case ModelAnswered(purpose=purpose) if purpose == TURN:
                model, answers, last = entry.model, answers + 1, entry.message.text or last
            case SessionRenamed():
                renamed = entry.title
            case UserSaid() if entry.source is not MessageSource.ORDER:
                said, last = said or entry.text, entry.text
            case RunEnded():
                reason, seconds = entry.reason.value, seconds + max(0.0, entry.at - began)
                if entry.answered and not answer_s:
                    answer_s = max(0.0, entry.at - (min(background.asked_at, began) or began))
            case VerdictRecorded():
                verdict, jobs = entry.verdict.origin.value, _failed_jobs(entry.verdict, background)
            case _:
                pass
    begun, used = find_subject(found), ledger.bill().usage
    return SessionSummary(
        session_id=session_id,
        about=begun,
        title=shorten_line(
            " ".join((renamed or _subject_title(_subject_from_order(found)) or said or _subject_title(begun)).split()),
            SUMMARY_CHARS,
        ),
        model=model,
        began_at=found[0].at if found else 0.0,
        changed_at=found[-1].at if found else 0.0,
        runs=runs,
        answers=answers,
        entries=len(found),
        reason=reason,
        usd=float(ledger.known_usd),
        unpriced=ledger.unknown,
        tokens=used.context,
        cached=used.cache_read,
        last_words=shorten_line(" ".join(last.split()), SUMMARY_CHARS),
        verdict=verdict,
        seconds=seconds,
        output=used.output,
        cause=background.cause,
        request=background.title,
        branch=background.branch,
        answer_s=answer_s,
        jobs=jobs,
    )


def _failed_jobs(verdict: FailureVerdict, background: RunBackground) -> tuple[FailedJob, ...]:
    by_print = {one.fingerprint: one for one in background.failures}
    made = []
    for job in verdict.jobs[:JOBS_SUMMARISED]:
        known = next((by_print[one] for one in job.fingerprints if one in by_print), None)
        first = known.fingerprint if known else next(iter(job.fingerprints), "")
        title, class_ = (known.title or known.kind, known.class_) if known else ("", "")
        name = replace_surrogates(job.job)
        made.append(FailedJob(name, job.job_id, job.origin.value, first, replace_surrogates(title), class_))
    return tuple(made)


def _subject_title(begun: SessionSubject) -> str:
    if not begun.project:
        return ""
    where = f"{begun.project}!{begun.mr_iid}" if begun.mr_iid else begun.project
    return f"{begun.workflow} on {where}" if begun.workflow else where


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder: JsonDecoder[SessionSummary] = JsonDecoder(SessionSummary)


def dump_summary(made: SessionSummary) -> bytes:
    """Encode a summary as JSON."""
    return _encoder.encode(made) + b"\n"


def load_summary(content: bytes) -> SessionSummary | None:
    """Decode a summary, or return None: an unreadable one can be made again from the journal."""
    try:
        return _decoder.decode(content)
    except InvalidJson:
        return None


class Speaker(StrEnum):
    """Who said a text; RUN is the run itself, including its order."""

    PERSON = "person"
    MODEL = "model"
    TOOL = "tool"
    RUN = "run"


class SpokenText(NamedTuple):
    """A text and who said it."""

    who: Speaker
    text: str


def texts_from_entry(entry: JournalEntry) -> tuple[SpokenText, ...]:
    """Return the texts of an entry for the search index; an imported history has one per message.

    The model's reasoning and provider data are left out. The texts are complete and may contain secrets: mask them
    first and truncate them afterwards, because half a secret cannot be recognised.
    """
    return tuple(words for words in _iter_entry_texts(entry) if words.text.strip())


def _iter_entry_texts(entry: JournalEntry) -> Iterator[SpokenText]:
    match entry:
        case UserSaid(text=text, source=source):
            yield SpokenText(Speaker.RUN if source is MessageSource.ORDER else Speaker.PERSON, text)
        case ModelAnswered(message=message, purpose=purpose) if purpose == TURN:
            yield SpokenText(Speaker.MODEL, message.text)
        case ToolStarted(name=name, arguments=arguments):
            yield SpokenText(Speaker.TOOL, f"{name} {arguments}")
        case ToolFinished(text=text):
            yield SpokenText(Speaker.TOOL, text)
        case Delegated(entry=own, arguments=arguments):
            yield SpokenText(Speaker.TOOL, f"{own.name} {arguments}" if arguments else "")
            yield from _iter_entry_texts(own)
        case VerdictRecorded(verdict=verdict):
            yield SpokenText(Speaker.RUN, render_verdict(verdict))
        case RunEnded(text=text, sentence=sentence):
            yield SpokenText(Speaker.RUN, "\n".join(filter(None, (text, sentence))))
        case HistoryImported(messages=chat):
            yield from chain.from_iterable(map(_iter_message_texts, messages_from_chat(chat)[0]))
        case _:
            pass


def _iter_message_texts(message: Message) -> Iterator[SpokenText]:
    match message:
        case UserMessage(text=text):
            yield SpokenText(Speaker.PERSON, text)
        case AssistantMessage(text=text, calls=calls):
            yield SpokenText(Speaker.MODEL, text)
            yield from (SpokenText(Speaker.TOOL, f"{call.name} {call.arguments}") for call in calls)
        case ToolMessage(text=text):
            yield SpokenText(Speaker.TOOL, text)
        case _:
            pass


def find_full_title(made: SessionSummary, entries: Iterable[JournalEntry]) -> str:
    """Return the text that the title is the beginning of, because a title may end in the middle of a secret."""
    begun = made.title.removesuffix("…")
    if begun == made.title:
        return made.title
    return _find_text_with_beginning(begun, entries) or made.title


def find_full_last_words(made: SessionSummary, entries: Sequence[JournalEntry]) -> str:
    """Return the text that the last words are the beginning of; see `find_full_title`."""
    begun = made.last_words.removesuffix("…")
    if begun == made.last_words:
        return begun
    return _find_text_with_beginning(begun, reversed(entries)) or ""


def _find_text_with_beginning(begun: str, entries: Iterable[JournalEntry]) -> str:
    for entry in entries:
        match entry:
            case UserSaid(text=text) | ModelAnswered(message=AssistantMessage(text=text)) | SessionRenamed(title=text):
                if " ".join(text.split()).startswith(begun):
                    return text
            case _:
                pass
    return ""
