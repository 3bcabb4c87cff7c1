"""What has to hold in every simulated world: checked at each write, and when all is settled."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from decimal import Decimal
from pathlib import Path

import msgspec

from hummingbird.core.journal import TURN, JournalEntry, ModelAnswered, ModelCalled, RunStarted, dump_entry, load_entry
from hummingbird.core.limits import FINAL_ATTEMPTS
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.orders import EventEnvelope, WorkOrder, session_id_for
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.core.protocols.storage import RatedNote
from hummingbird.core.sessions import JOURNAL
from hummingbird.gitlab.write.protocol import NoteKind, NoteMarker
from hummingbird.lab.gitlab.case_loader import READ_TOKEN
from hummingbird.service.envelopes import parse_envelope
from hummingbird.service.protocols import RetryLater
from hummingbird.storage.bucket_journal import TAIL_NAME, BucketJournal, JournalTail, parse_tail, segment_name
from hummingbird.storage.journals import FileJournal
from hummingbird.storage.spending_store import SpendingSheet
from tests.simulation.agent_parts import USD_PER_CALL
from tests.simulation.event_loop import PROCESS
from tests.simulation.gitlab_service import ENDS, MARKERS, OUTSIDER, BotNote
from tests.simulation.replica import Services, project_limits
from tests.simulation.script import EventKind, Script
from tests.simulation.sqs_service import SqsMessage

STORE_FAILED_S = 900.0
SPENT_TODAY: ContextVar[Decimal | None] = ContextVar("what the task was told of today's spending", default=None)


class InvariantWatch:
    """Collects violations, each as a sentence."""

    def __init__(self, services: Services, script: Script) -> None:
        self._services, self._script = services, script
        self.violations: list[str] = []
        self.accepted: set[str] = set()
        self._ended: set[str] = set()  # orders that have, or had, a note that says how they ended
        self._asked: set[str] = set()  # sessions for which a model was asked
        self._made: set[bytes] = set()  # all entries that were ever appended
        self._flushed: dict[Path, bytes] = {}  # journals in files, as far as a commit has acknowledged them
        self._acknowledged: dict[str, tuple[str, list[JournalEntry]]] = {}  # life and entries of journals in a bucket
        self._revived: set[str] = set()  # orders that were dead letters
        self._projects = {mr.iid: services.gitlab.path_of(mr) for mr in services.gitlab.world.merge_requests}
        services.gitlab.on_write.append(self._check_notes)
        services.gitlab.on_note.append(self._check_is_held)
        services.bucket.on_write.append(self._check_journal_write)
        services.provider.on_call.append(self._check_billing)
        services.check_commit = self.check_commit
        services.note_entry = self.note_entry
        services.note_spending = self.note_spending
        services.recorded_spending = self.recorded_spending

    def fail(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)

    # at every step

    def _check_notes(self) -> None:
        """At most one placeholder and one end note per order, and no write with the token that reads."""
        seen: Counter[tuple[str, str]] = Counter()
        for note in self._services.gitlab.bot_notes():
            if note.marker and note.marker.order:
                self._ended |= {note.marker.order} if note.marker.part in ENDS else set()
                seen[note.marker.order, "end" if note.marker.part in ENDS else note.marker.part.value] += 1
        for (order, part), times in seen.items():
            if times > 1 and part in ("end", NoteKind.PLACEHOLDER.value):
                self.fail(f"Order {order[:6]} has {times} notes of the kind {part}.")
            elif times > 1 and part == NoteKind.FINDING.value:
                self._check_findings(order)
        self._check_runs()
        answered = Counter(self._answered_notes())
        for note_id, times in answered.items():
            if times > 1:
                self.fail(f"Note {note_id} was answered {times} times.")
        world = self._services.gitlab.world
        reader = world.user(next(each.user_id for each in world.tokens if each.value == READ_TOKEN)).username
        gitlab = self._services.gitlab
        if any(write.user == reader for write in (*gitlab.writes[-1:], *gitlab.refused_writes[-1:])):
            self.fail("A write was sent with the token that reads.")

    def _answered_notes(self) -> Iterator[int]:
        for note in self._services.gitlab.bot_notes():
            if target := MARKERS.parse_answer_target(note.body):
                yield target

    def _check_findings(self, order: str) -> None:
        """An order says each finding once."""
        found = (note.marker for note in self._marked_notes())
        said = Counter(marker.finding for marker in found if marker and marker.order == order and marker.finding)
        if any(times > 1 for times in said.values()):
            self.fail(f"Order {order[:6]} has posted a finding {max(said.values())} times.")

    def _check_runs(self) -> None:
        """No more automatic runs ask a model for a merge request than may, and no note is public that must not be."""
        runs: dict[tuple[int, str], set[str]] = defaultdict(set)
        for note in self._marked_notes():
            marker, project = note.marker, self._projects[note.iid]
            assert marker is not None
            if not note.internal and project_limits(self._script, project).internal and marker.order:
                self.fail(f"Note {note.id} of order {marker.order[:6]} is public, but notes are internal there.")
            if (
                marker.part is NoteKind.PLACEHOLDER
                and marker.id in self._asked
                and _is_automatic(marker, project, note.iid)
            ):
                runs[note.iid, marker.wf].add(marker.id)
        for (iid, workflow), sessions in runs.items():
            allowed = project_limits(self._script, self._projects[iid]).runs
            if len(sessions) > allowed:
                self.fail(f"{workflow} has run {len(sessions)} times by itself on !{iid}, but may {allowed} times.")

    def _check_is_held(self, process: str, marker: NoteMarker) -> None:
        """A note is sent only by the process that holds the message of its session."""
        if not marker.order:
            return
        if self._services.disk is not None:
            held = self._services.host_holders(marker.id)
        else:
            now, messages = self._services.network.loop.time(), self._services.queue.messages
            held = {one.holder for one in messages if one.group == marker.id and one.visible_at > now}
        if process not in held:
            self.fail(f"{process} sent a note of order {marker.order[:6]}, whose message it did not hold.")

    def note_entry(self, session_project: str, entry: JournalEntry) -> None:
        """Remember an entry; a call of a model that is not the last one needs money of the day."""
        self._made.add(dump_entry(entry))
        limit, spent = project_limits(self._script, session_project).usd_per_day, SPENT_TODAY.get()
        if not isinstance(entry, ModelCalled) or entry.final or not limit:
            return
        if spent is None:
            self.fail("A run asked its model without having asked what is spent today.")
        elif spent >= limit:
            self.fail(f"A run went on asking its model although ${spent} of ${limit} are spent today.")

    def note_spending(self, recorded: Decimal, usd: Decimal | None) -> None:
        """What a run is told of today's spending, if anything, is no less than what was recorded when it asked."""
        SPENT_TODAY.set(usd or Decimal(0))
        if usd is None:
            return
        network = self._services.network
        failed = network.failed_at.get((PROCESS.get(), "bucket"), -STORE_FAILED_S)
        if network.loop.time() - failed < STORE_FAILED_S:
            return
        if self._script.projects == 1 and usd < recorded:
            self.fail(f"A run was told that ${usd} are spent today, but ${recorded} are recorded.")

    def _check_journal_write(self, name: str, before: bytes | None, after: bytes | None) -> None:
        """No write of a journal takes back entries that an earlier one stored, or invents one."""
        if name.startswith("sessions/") and "/journal/" in name and not name.endswith(TAIL_NAME):
            if before is not None and after != before:
                self.fail(f"The sealed journal {name} was changed or deleted.")
            return
        if not name.endswith(TAIL_NAME):
            return
        if after is not None and any(line not in self._made for line in parse_tail(after).lines):
            self.fail(f"The journal {name} has an entry that nobody appended.")
        if before is None:
            return
        old = parse_tail(before)
        if after is None:
            if old.lines:
                self.fail(f"The journal {name} was deleted with {len(old.lines)} entries.")
            return
        new = parse_tail(after)
        sealed = new.head.first - old.head.first
        if old.head.life == new.head.life and (
            sealed < 0 or new.lines[: len(old.lines) - sealed] != old.lines[sealed:]
        ):
            self.fail(f"A write of the journal {name} changed or dropped entries that were stored.")

    def check_commit(self, journal: BucketJournal | FileJournal, entries: int) -> None:
        """What a commit acknowledged is stored."""
        if isinstance(journal, FileJournal):
            content, flushed = journal._path.read_bytes(), self._flushed.get(journal._path, b"")
            if not content.startswith(flushed) or content.count(b"\n") < entries:
                self.fail(f"A commit of {journal._path.parent.name} returned, but not all of its entries are stored.")
            self._flushed[journal._path] = content
            return
        tail = self.stored_tail(journal._prefix)
        if tail is None or (tail.head.life == journal._tail.head.life and tail.end < entries):
            self.fail(f"A commit of {journal._prefix} returned, but not all of its {entries} entries are stored.")
        session_id = journal._prefix.rpartition("/")[2]
        self._acknowledged[session_id] = journal._tail.head.life, list(journal.entries()[:entries])

    def check_acknowledged(self, when: str) -> None:
        """What a commit acknowledged is there, and nothing that nobody appended."""
        for path, flushed in self._flushed.items():
            content = path.read_bytes() if path.exists() else b""
            if not content.startswith(flushed):
                self.fail(f"{when}, entries of {path.parent.name} are gone that a commit had acknowledged.")
            if any(line + b"\n" not in self._made for line in flushed.split(b"\n")[:-1]):
                self.fail(f"The journal of {path.parent.name} has an entry that nobody appended.")
        for session_id, (life, entries) in self._acknowledged.items():
            tail = self.stored_tail(f"sessions/{session_id}")
            stored = self._journal_lines(session_id)
            if tail is None or tail.head.life != life:
                self.fail(f"{when}, the journal of {session_id} is gone.")
            elif stored[: len(entries)] != list(map(dump_entry, entries)) or not self._made.issuperset(stored):
                self.fail(f"{when}, the journal of {session_id} does not have the entries that were acknowledged.")

    def note_revived(self, body: str) -> None:
        """Remember an order that was a dead letter and is sent anew."""
        envelope = parse_envelope(body)
        self._revived.add(envelope.id if isinstance(envelope, WorkOrder) else envelope.identity)

    def stored_tail(self, prefix: str) -> JournalTail | None:
        found = self._services.bucket.objects.get(f"{prefix}/{TAIL_NAME}")
        return None if found is None else parse_tail(found.content)

    def journal_entries(self, session_id: str) -> list[JournalEntry]:
        """Return what is stored of a session's journal, as far as it is whole."""
        return [load_entry(line, number) for number, line in enumerate(self._journal_lines(session_id), 1)]

    def _journal_lines(self, session_id: str) -> list[bytes]:
        if self._services.sessions is not None:
            file = self._services.sessions / session_id / JOURNAL
            lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
            return [line for line in lines if b"\0" not in line]
        prefix = f"sessions/{session_id}"
        tail = self.stored_tail(prefix)
        if tail is None:
            return []
        sealed: list[bytes] = []
        while len(sealed) < tail.head.first:
            name = f"{prefix}/{segment_name(len(sealed), tail.head.life)}"
            sealed += [line + b"\n" for line in self._services.bucket.objects[name].content.split(b"\n")[:-1]]
        return [*sealed, *tail.lines]

    def _check_billing(self, request: ModelRequest, process: str) -> None:
        """Nobody asks again for an answer that is written down, unless the store of journals failed it lately.

        Then a run begins anew in memory, so that the note does not wait for the store.
        """
        self._asked.add(request.session_id)
        self._check_runs()
        network = self._services.network
        if network.loop.time() - network.failed_at.get((process, "bucket"), -STORE_FAILED_S) < STORE_FAILED_S:
            return
        entries = self.journal_entries(request.session_id)
        written = sum(isinstance(one, ModelAnswered) and one.kept and one.purpose == TURN for one in entries)
        known = sum(isinstance(message, AssistantMessage) for message in request.messages)
        if known < written:
            self.fail(
                f"Session {request.session_id[:6]}: a model was asked for answer {known + 1}, but {written} answers "
                "are written down."
            )

    # at the end

    def check_settled(self) -> None:
        """Every accepted event led to its orders or a reason, and every order to an end, a reason or a dead letter."""
        dead = list(map(parse_envelope, self._services.queued_bodies(dead=True)))
        dead_ids = {one.identity if isinstance(one, EventEnvelope) else one.id for one in dead}
        processed = {event.identity: outcome for event, outcome in self._services.event_outcomes}
        for identity in sorted(self.accepted - processed.keys() - dead_ids):
            self.fail(f"The accepted event {identity[:6]} led to nothing.")
        made = [outcome for identity, outcome in processed.items() if identity not in dead_ids]
        orders = {order.id: order for outcome in made if isinstance(outcome, tuple) for order in outcome}
        ended = self._ended
        final = {
            order.id: outcome for _, _, order, outcome in self._services.outcomes if not isinstance(outcome, RetryLater)
        }
        for order in orders.values():
            if order.id in ended or order.id in dead_ids:
                continue
            if order.id not in final:
                self.fail(f"Order {order.id[:6]} has no result, no reason and is no dead letter.")
            elif final[order.id] is None and order.cause.value != "page":
                self.fail(f"Order {order.id[:6]} ended, but there is no note that says so.")
        if refused := [order.id[:6] for order in orders.values() if order.actor == OUTSIDER]:
            self.fail(f"Order {refused[0]} runs for somebody who is no developer.")
        self._check_placeholders(dead_ids)
        self._check_order(dead_ids)
        self._check_spending()
        self._check_drafts()
        self.check_acknowledged("At the end")
        for order in orders.values():
            self._check_run(order)

    def _marked_notes(self) -> Iterator[BotNote]:
        return (note for note in self._services.gitlab.bot_notes() if note.marker is not None)

    def _check_placeholders(self, dead_ids: set[str]) -> None:
        """No placeholder waits for ever."""
        if any(event.kind is EventKind.REMOVE_OURS for event in self._script.events):
            return  # what was removed may have been the end that followed it
        last: dict[str, BotNote] = {}
        ends: dict[str, int] = {}
        for note in self._marked_notes():
            assert note.marker is not None
            if note.marker.part is NoteKind.PLACEHOLDER:
                last[note.marker.id] = note
            elif note.marker.part in ENDS:
                ends[note.marker.id] = max(note.id, ends.get(note.marker.id, 0))
        for session, note in last.items():
            assert note.marker is not None
            if ends.get(session, 0) < note.id and note.marker.order not in dead_ids:
                self.fail(f"The placeholder of order {note.marker.order[:6]} waits for ever.")

    def _check_order(self, dead_ids: set[str]) -> None:
        """Orders of a session end in the order in which they were sent; one that was given up may come again later."""
        sent: dict[str, float] = {}
        for at, _, what, message in self._services.queue.log:
            envelope = _order_in(message)
            if what == "send" and envelope is not None:
                sent.setdefault(envelope.id, at)
        ended: dict[str, list[tuple[float, str]]] = defaultdict(list)
        first: set[str] = set()
        for at, _, order, outcome in self._services.outcomes:
            if not isinstance(outcome, RetryLater) and order.id not in {*first, *dead_ids, *self._revived}:
                first.add(order.id)
                ended[order.session_id].append((at, order.id))
        for session, found in ended.items():
            names = [order for _, order in found]
            wanted = sorted(names, key=lambda order: sent.get(order, 0.0))
            if names != wanted:
                self.fail(
                    f"Session {session[:6]}: orders were worked off as {_shorten(names)}, sent as {_shorten(wanted)}."
                )

    def _check_run(self, order: WorkOrder) -> None:
        """A run asks no more than its last question once its turns or its money are used up."""
        limits = project_limits(self._script, order.project)
        answered, finals, usd, within, final = 0, 0, Decimal(0), False, False
        for entry in self.journal_entries(order.session_id):
            if isinstance(entry, RunStarted):
                within = entry.run_id == order.id
            elif not within:
                continue
            elif isinstance(entry, ModelCalled) and not entry.final and limits.are_used_up(answered, usd):
                self.fail(f"Order {order.id[:6]} asked on after {answered} answers for ${usd}.")
            elif isinstance(entry, ModelCalled):
                final = entry.final
            elif isinstance(entry, ModelAnswered) and entry.purpose == TURN:
                answered, finals, usd = answered + 1, finals + final, usd + (entry.cost_usd or Decimal(0))
        if finals > FINAL_ATTEMPTS:
            self.fail(f"Order {order.id[:6]} had {finals} last answers.")

    def _check_drafts(self) -> None:
        """No note of an order that has ended is left as a draft until the next review deletes it.

        One that was a dead letter may have nothing to report any more, and then does not look for drafts.
        """
        ended = {note.marker.order for note in self._marked_notes() if note.marker and note.marker.part in ENDS}
        ended -= self._revived
        for mr in self._services.gitlab.world.merge_requests:
            for draft in mr.draft_notes:
                if (marker := MARKERS.parse_marker(draft.body)) and marker.order in ended:
                    self.fail(f"A draft of order {marker.order[:6]} is left behind on !{mr.iid}.")

    def check_votes(self, stored: Iterable[RatedNote], most: int) -> None:
        """Only votes of developers count."""
        for one in stored:
            if one.votes.up + one.votes.down > most:
                self.fail(f"{one.votes.up} votes are counted for note {one.note.note_id}, but {most} can be.")

    def _check_spending(self) -> None:
        """No more is recorded as spent than the provider was asked for, and a day's money is kept to."""
        spent, calls = self.recorded_spending(), self._services.provider.calls
        if spent > calls * USD_PER_CALL:
            self.fail(f"${spent} are recorded as spent, but the provider was asked {calls} times.")

    def recorded_spending(self) -> Decimal:
        if self._services.sessions is not None:
            return self._services.host_spending()
        stored = self._services.bucket.objects.items()
        sheets = [
            msgspec.json.decode(one.content, type=SpendingSheet) for name, one in stored if name.startswith("spending/")
        ]
        return Decimal(sum(sheet.micro for sheet in sheets)) / 1_000_000


def _is_automatic(marker: NoteMarker, project: str, iid: int) -> bool:
    return marker.id == session_id_for(project, iid, marker.wf, marker.sha)


def _order_in(message: SqsMessage) -> WorkOrder | None:
    envelope = parse_envelope(message.body)
    return envelope if isinstance(envelope, WorkOrder) else None


def _shorten(names: list[str]) -> str:
    return ", ".join(name[:6] for name in names)
