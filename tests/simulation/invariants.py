"""What has to hold in every simulated world: checked at each write, and when all is settled."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal

import msgspec

from hummingbird.core.journal import TURN, JournalEntry, ModelAnswered, load_entry
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.gitlab.case_loader import READ_TOKEN
from hummingbird.service.envelopes import parse_envelope
from hummingbird.service.protocols import RetryLater
from hummingbird.storage.bucket_journal import TAIL_NAME, BucketJournal, JournalTail, parse_tail
from hummingbird.storage.spending_store import SpendingSheet
from tests.simulation.agent_parts import USD_PER_CALL
from tests.simulation.gitlab_service import ENDS, MARKERS, BotNote
from tests.simulation.replica import Services
from tests.simulation.sqs_service import SqsMessage

STORE_FAILED_S = 900.0


class InvariantWatch:
    """Collects violations, each as a sentence."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.violations: list[str] = []
        self.accepted: set[str] = set()
        services.gitlab.on_write.append(self._check_notes)
        services.bucket.on_write.append(self._check_journal_write)
        services.provider.on_call.append(self._check_billing)

    def fail(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)

    # at every step

    def _check_notes(self) -> None:
        """At most one placeholder and one end note per order, and no write with the token that reads."""
        seen: Counter[tuple[str, str]] = Counter()
        for note in self._services.gitlab.bot_notes():
            if note.marker and note.marker.order:
                seen[note.marker.order, "end" if note.marker.part in ENDS else note.marker.part.value] += 1
        for (order, part), times in seen.items():
            if times > 1 and part in ("end", NoteKind.PLACEHOLDER.value):
                self.fail(f"Order {order[:6]} has {times} notes of the kind {part}.")
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

    def _check_journal_write(self, name: str, before: bytes | None, after: bytes | None) -> None:
        """No write of a journal takes back entries that an earlier one stored."""
        if not name.endswith(TAIL_NAME) or before is None:
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

    def check_commit(self, journal: BucketJournal, entries: int) -> None:
        """What a commit acknowledged is stored."""
        tail = self.stored_tail(journal._prefix)
        if tail is None or (tail.head.life == journal._tail.head.life and tail.end < entries):
            self.fail(f"A commit of {journal._prefix} returned, but not all of its {entries} entries are stored.")

    def stored_tail(self, prefix: str) -> JournalTail | None:
        found = self._services.bucket.objects.get(f"{prefix}/{TAIL_NAME}")
        return None if found is None else parse_tail(found.content)

    def journal_entries(self, session_id: str) -> list[JournalEntry]:
        """Return what is stored of a session's journal; none is so long here that it is sealed."""
        tail = self.stored_tail(f"sessions/{session_id}")
        return [] if tail is None else [load_entry(line, number) for number, line in enumerate(tail.lines, 1)]

    def _check_billing(self, request: ModelRequest, process: str) -> None:
        """Nobody asks again for an answer that is written down, unless the store of journals failed it lately.

        Then a run begins anew in memory, so that the note does not wait for the store.
        """
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
        dead = [parse_envelope(letter.body) for letter in self._services.queue.dead_letters]
        dead_ids = {one.identity if isinstance(one, EventEnvelope) else one.id for one in dead}
        processed = {event.identity: outcome for event, outcome in self._services.event_outcomes}
        for identity in sorted(self.accepted - processed.keys() - dead_ids):
            self.fail(f"The accepted event {identity[:6]} led to nothing.")
        orders = {order.id: order for outcome in processed.values() if isinstance(outcome, tuple) for order in outcome}
        ended = {note.marker.order for note in self._marked_notes() if note.marker and note.marker.part in ENDS}
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
        self._check_placeholders(dead_ids)
        self._check_order(dead_ids)
        self._check_spending()

    def _marked_notes(self) -> Iterator[BotNote]:
        return (note for note in self._services.gitlab.bot_notes() if note.marker is not None)

    def _check_placeholders(self, dead_ids: set[str]) -> None:
        """No placeholder waits for ever."""
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
            if not isinstance(outcome, RetryLater) and order.id not in {*first, *dead_ids}:
                first.add(order.id)
                ended[order.session_id].append((at, order.id))
        for session, found in ended.items():
            names = [order for _, order in found]
            wanted = sorted(names, key=lambda order: sent.get(order, 0.0))
            if names != wanted:
                self.fail(
                    f"Session {session[:6]}: orders were worked off as {_shorten(names)}, sent as {_shorten(wanted)}."
                )

    def _check_spending(self) -> None:
        """No more is recorded as spent than the provider was asked for."""
        stored = self._services.bucket.objects.items()
        sheets = [
            msgspec.json.decode(one.content, type=SpendingSheet) for name, one in stored if name.startswith("spending/")
        ]
        spent = Decimal(sum(sheet.micro for sheet in sheets)) / 1_000_000
        calls = self._services.provider.calls
        if spent > calls * USD_PER_CALL:
            self.fail(f"${spent} are recorded as spent, but the provider was asked {calls} times.")


def _order_in(message: SqsMessage) -> WorkOrder | None:
    envelope = parse_envelope(message.body)
    return envelope if isinstance(envelope, WorkOrder) else None


def _shorten(names: list[str]) -> str:
    return ", ".join(name[:6] for name in names)
