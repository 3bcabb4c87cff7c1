"""Break a promise of the service on purpose: a simulation that does not notice would prove nothing.

with MUTANTS["ignore the marker"]():
    played = play(make_script(42))
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import msgspec

from hummingbird.agent import steps
from hummingbird.agent.budget import budget_pressures
from hummingbird.agent.model_call import ModelCaller
from hummingbird.app import investigation
from hummingbird.core.errors import GitLabUnavailable, GitLabWriteUncertain, HummingbirdError
from hummingbird.core.orders import WorkOrder
from hummingbird.core.votes import VoteCount
from hummingbird.gitlab.http_client import GitLabHttpClient, GitLabHttpResponse, GitLabRequest
from hummingbird.gitlab.write.project_writer import GitLabProjectReader
from hummingbird.gitlab.write.protocol import DEVELOPER
from hummingbird.lab.gitlab.case_loader import READ_TOKEN
from hummingbird.queues import sqlite_queue
from hummingbird.service import findings, publisher, run_stage, votes, worker
from hummingbird.service.draft_batch import DraftBatch
from hummingbird.service.event_ingress import EventIngress, IngressReceipt
from hummingbird.service.message_lease import MessageLease
from hummingbird.service.protocols import Skipped
from hummingbird.service.worker import Worker
from hummingbird.storage import bucket_journal
from hummingbird.storage.bucket_journal import BucketJournal
from hummingbird.storage.journals import FileJournal
from hummingbird.storage.spending_store import SpendingTally
from tests.simulation import replica

Mutant = Callable[[], AbstractContextManager[None]]


def replace_parts(*parts: tuple[Any, str, Any]) -> Mutant:
    """Return a mutant that replaces attributes: owner, name, and what stands there instead."""

    @contextmanager
    def broken() -> Iterator[None]:
        with ExitStack() as patched:
            for owner, name, part in parts:
                patched.enter_context(patch.object(owner, name, part))
            yield

    return broken


async def _do_nothing(*_: Any, **__: Any) -> None:
    return None


# who may write


def _parse_tail_without_lease(content: bytes) -> bucket_journal.JournalTail:
    tail = _parse_tail(content)
    return bucket_journal.JournalTail(msgspec.structs.replace(tail.head, until=0.0), tail.lines)


_parse_tail = bucket_journal.parse_tail


async def _send_repeatedly(client: GitLabHttpClient, request: GitLabRequest) -> GitLabHttpResponse:
    return await _send_request(client, replace(request, repeatable=True))


_send_request = GitLabHttpClient.send


def _find_nothing(*_: Any) -> Any:
    return lambda _: None


# messages


async def _delete_first(working: Worker, holding: MessageLease, message: Any, *given: Any) -> None:
    queue: Any = working._queue
    await type(queue).delete(queue, message)
    await _process_envelope(working, holding, message, *given)


_process_envelope = Worker._process_envelope


async def _accept_unsent(ingress: EventIngress, delivery: Any, *, forced: bool = False) -> IngressReceipt:
    return IngressReceipt(delivery.identity)


async def _delete_what_fails(_: Worker, lease: MessageLease, *__: Any) -> None:
    await lease.complete()


async def _skip_while_gitlab_is_away(stage: Any, order: WorkOrder, *, last_try: bool) -> Any:
    try:
        return await _process_order(stage, order, last_try=last_try)
    except (GitLabUnavailable, GitLabWriteUncertain):
        return Skipped("GitLab is away")


_process_order = run_stage.RunStage.process


def _group_backwards(messages: Any) -> Any:
    groups: dict[str, list[Any]] = {}
    for message in messages:
        groups.setdefault(message.group, []).insert(0, message)
    return list(groups.values())


_FREE_IN_FLIGHT = sqlite_queue._FREE_ONES.replace("visible_at > :now AND", "visible_at > :now AND 0 AND")


# journals


async def _append_twice(journal: BucketJournal) -> None:
    journal._pending += journal._pending[-1:]
    await _commit_bucket(journal)


_commit_bucket = BucketJournal.commit


async def _commit_nothing(journal: BucketJournal) -> None:
    journal._pending.clear()


def _invent(journal: BucketJournal, entry: Any) -> None:
    _append(journal, entry)
    journal._pending.append(journal._pending[-1].replace(b'"at":', b'"at":1'))


_append = BucketJournal.append


def _flush_nothing(journal: FileJournal, _: int) -> None:
    journal._unsynced.clear()


def _flush_only_the_file(journal: FileJournal, number: int) -> None:
    os.fdatasync(number)


# money and limits


async def _ask_nobody_about_today(_: ModelCaller) -> Decimal:
    return Decimal(0)


def _without_pressure(*budgets: str) -> Any:
    def pressures(*given: Any) -> Any:
        return [one for one in _budget_pressures(*given) if one.budget not in budgets]

    return pressures


_budget_pressures = budget_pressures


def _add_twice(tally: SpendingTally, content: bytes | None, at: float) -> Any:
    sheet = _apply_to(tally, content, at)
    return msgspec.structs.replace(sheet, rest=sheet.rest + sheet.micro)


_apply_to = SpendingTally.apply_to


def _drop_the_day(tally: SpendingTally, content: bytes | None, at: float) -> Any:
    return _apply_to(tally, None, at)


async def _start_anew(agent: Any, order: WorkOrder, text: str) -> Any:
    return await agent.arun(text, run_id=order.id)


# people and notes


async def _is_developer(*_: Any) -> int:
    return DEVELOPER


def _choose_public(*given: Any) -> publisher.ThreadLocation:
    return replace(_choose_location(*given), internal=False)


_choose_location = publisher._choose_location


async def _hold_and_leave(batch: DraftBatch) -> None:
    with suppress(HummingbirdError):
        await batch.forge.publish_pending_notes(batch._iid)


def _count_all_votes(_: object) -> VoteCount:
    return VoteCount(up=2)


def _none_is_posted(*_: Any) -> set[str]:
    return set()


async def _find_no_fingerprints(*_: Any) -> set[str]:
    return set()


MUTANTS: dict[str, Mutant] = {
    "drop the lease check": replace_parts(
        (MessageLease, "ensure", _do_nothing), (bucket_journal, "parse_tail", _parse_tail_without_lease)
    ),
    "retry a write blindly": replace_parts((GitLabHttpClient, "send", _send_repeatedly)),
    "delete a message before its work is done": replace_parts((Worker, "_process_envelope", _delete_first)),
    "ignore the marker": replace_parts(
        (publisher, "placeholder_finder", _find_nothing), (publisher, "end_note_finder", _find_nothing)
    ),
    "write with the token that reads": replace_parts((replica, "WRITE_TOKEN", READ_TOKEN)),
    "flush no journal to the disk": replace_parts((FileJournal, "_sync_to_disk", _flush_nothing)),
}
SLOW_MUTANTS: dict[str, Mutant] = {
    "write notes without holding the message": replace_parts((MessageLease, "ensure", _do_nothing)),
    "say that an event is queued, and queue nothing": replace_parts((EventIngress, "accept", _accept_unsent)),
    "delete a message when its work fails": replace_parts((Worker, "_handle_failure", _delete_what_fails)),
    "skip orders while GitLab is away": replace_parts((run_stage.RunStage, "process", _skip_while_gitlab_is_away)),
    "work off a group from its end": replace_parts((worker, "_group_messages", _group_backwards)),
    "give out a group of which a message is in flight": replace_parts((sqlite_queue, "_FREE_ONES", _FREE_IN_FLIGHT)),
    "acknowledge a commit that was not made": replace_parts((BucketJournal, "commit", _commit_nothing)),
    "store an entry twice": replace_parts((BucketJournal, "commit", _append_twice)),
    "invent an entry": replace_parts((BucketJournal, "append", _invent)),
    "flush a journal, but not its folder": replace_parts((FileJournal, "_sync_to_disk", _flush_only_the_file)),
    "begin a run anew after a crash": replace_parts((investigation, "_run_or_resume", _start_anew)),
    "forget the money of the day": replace_parts((ModelCaller, "usd_today", _ask_nobody_about_today)),
    "ignore the money of a run": replace_parts((steps, "budget_pressures", _without_pressure("money"))),
    "ignore how many turns a run has": replace_parts((steps, "budget_pressures", _without_pressure("iterations"))),
    "ignore the money of the day": replace_parts((steps, "budget_pressures", _without_pressure("money of the day"))),
    "count what was spent twice": replace_parts((SpendingTally, "apply_to", _add_twice)),
    "start a new sheet of spending each time": replace_parts((SpendingTally, "apply_to", _drop_the_day)),
    "run as often as somebody pushes": replace_parts(
        (run_stage, "run_refusal_reason", lambda *_: ""), (run_stage, "overtaken_reason", lambda *_: "")
    ),
    "run for everybody": replace_parts((GitLabProjectReader, "access_level", _is_developer)),
    "publish notes that are for members": replace_parts((publisher, "_choose_location", _choose_public)),
    "post a finding again": replace_parts(
        (findings, "_find_fingerprints", _find_no_fingerprints), (findings, "_batch_fingerprints", _none_is_posted)
    ),
    "leave drafts behind": replace_parts((DraftBatch, "release", _hold_and_leave)),
    "count everybody's votes": replace_parts((votes, "count_votes", _count_all_votes)),
}
