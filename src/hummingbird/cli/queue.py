"""The commands of `hummingbird queue`: list dead letters, send them to the queue again, or delete them."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hummingbird.app.stores import open_queue
from hummingbird.cli.options import config_option, json_option, verbose_option
from hummingbird.config.loader import find_config, load_config
from hummingbird.core.errors import EventUnreadable, UsageError
from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.core.protocols.queues import DeadLetter, Queue
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.webhook_events import (
    EmojiChanged,
    IgnoredEvent,
    MergeRequestChanged,
    NoteWritten,
    PipelineChanged,
)
from hummingbird.service.envelopes import parse_envelope
from hummingbird.service.event_parser import parse_event

_ids_argument = click.argument("ids", nargs=-1, metavar="[ID]...")


def _all_option(verb: str) -> Callable[[Any], Any]:
    return click.option("--all", "every", is_flag=True, help=f"{verb} all dead letters.")


@click.group()
def queue() -> None:
    """List, retry or delete messages that failed too often.

    When a message fails three times, the queue sets it aside as a dead letter, so that it does not block others. It
    stays there until you retry or delete it.

    \b
      hummingbird queue list
      hummingbird queue retry --all
      hummingbird queue drop 3f2a8c… --yes
    """


@queue.command(name="list")
@json_option
@config_option
@verbose_option
def list_command(as_json: bool, config: str | None) -> None:
    """List dead letters: id, age and subject, never the text.

    \b
      hummingbird queue list --json
    """
    sys.exit(print_letters(config, as_json=as_json))


@queue.command()
@_ids_argument
@_all_option("Retry")
@config_option
@verbose_option
def retry(ids: tuple[str, ...], every: bool, config: str | None) -> None:
    """Put dead letters back into the queue.

    Each becomes the last message of its group.

    \b
      hummingbird queue retry 3f2a8c1e-5d0b-4a39-9c50-0c8f3e3b7c11
    """
    sys.exit(retry_letters(config, ids, every=every))


@queue.command()
@_ids_argument
@_all_option("Delete")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation. Required when not run in a terminal.")
@config_option
@verbose_option
def drop(ids: tuple[str, ...], every: bool, yes: bool, config: str | None) -> None:
    """Delete dead letters permanently, after asking for confirmation.

    \b
      hummingbird queue drop --all --yes
    """
    sys.exit(drop_letters(config, ids, every=every, yes=yes))


_WORD_CHARS = 120
_AGE_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class DeadLetterSummary:
    """What a dead letter was about, without its text, which outsiders wrote.

    Unknown fields are empty. `since` is in seconds since the epoch, 0 if unknown.
    """

    id: str
    what: str
    since: float = 0.0
    workflow: str = ""
    project: str = ""
    merge_request: int = 0
    session: str = ""

    def age_text(self, now: float) -> str:
        if not self.since:
            return "?"
        seconds = max(0, int(now - self.since))
        size, unit = next((one for one in _AGE_UNITS if seconds >= one[0]), _AGE_UNITS[-1])
        return f"{seconds // size} {unit}"


def summarize_letter(letter: DeadLetter) -> DeadLetterSummary:
    """Summarize a dead letter; never raises, for an unreadable body may be the reason why it failed."""
    try:
        envelope = parse_envelope(letter.body)
    except EventUnreadable:
        return DeadLetterSummary(letter.id, "message of unknown format")
    return (
        _summarize_order(letter.id, envelope)
        if isinstance(envelope, WorkOrder)
        else _summarize_event(letter.id, envelope)
    )


def _summarize_order(letter_id: str, order: WorkOrder) -> DeadLetterSummary:
    return DeadLetterSummary(
        letter_id,
        f"order ({order.cause})",
        order.made_at,
        _printable_word(order.workflow),
        _printable_word(order.project),
        order.mr_iid,
        _printable_word(order.session_id),
    )


def _summarize_event(letter_id: str, event: EventEnvelope) -> DeadLetterSummary:
    if not event.body:
        return DeadLetterSummary(letter_id, "event, too large for the queue", event.at)
    try:
        incoming = parse_event(event.body.encode("utf-8", "surrogatepass"))
    except EventUnreadable:
        return DeadLetterSummary(letter_id, "event that cannot be read", event.at)
    match incoming:
        case PipelineChanged(project=project, status=status, merge_request=iid):
            return DeadLetterSummary(
                letter_id,
                f"event: pipeline {_printable_word(status)}",
                event.at,
                "",
                _printable_word(project.path),
                iid,
            )
        case MergeRequestChanged(project=project, action=action, change=change):
            what = f"event: merge request {_printable_word(action)}".rstrip()
            return DeadLetterSummary(letter_id, what, event.at, "", _printable_word(project.path), change.iid)
        case NoteWritten(project=project, change=change):
            return DeadLetterSummary(letter_id, "event: note", event.at, "", _printable_word(project.path), change.iid)
        case EmojiChanged(project=project):
            return DeadLetterSummary(letter_id, "event: emoji", event.at, "", _printable_word(project.path))
        case IgnoredEvent():
            return DeadLetterSummary(letter_id, "event of a kind that is ignored", event.at)


def _printable_word(text: str) -> str:
    """Replace unprintable characters: names come from outsiders, too."""
    return shorten_line("".join(letter if letter.isprintable() else "?" for letter in text), _WORD_CHARS)


LetterAction = Callable[[Queue, str], Awaitable[str]]


def print_letters(config: str | None, *, as_json: bool) -> int:
    letters = asyncio.run(_load_letters(config))
    now = time.time()
    if as_json:
        click.echo(json.dumps([_letter_object(letter) for letter in letters], indent=2))
    elif letters:
        click.echo("\n".join(f"{letter.id}  {letter.age_text(now):>6}  {_letter_text(letter)}" for letter in letters))
        click.echo(
            "\nRetry them with `hummingbird queue retry`, or delete them with `hummingbird queue drop`.", err=True
        )
    else:
        click.echo("There are no dead letters.")
    return 0


def retry_letters(config: str | None, ids: Sequence[str], *, every: bool) -> int:
    _check_selection(ids, every=every)
    return asyncio.run(_apply_to_letters(config, ids, _retry_letter, every=every))


def drop_letters(config: str | None, ids: Sequence[str], *, every: bool, yes: bool) -> int:
    _check_selection(ids, every=every)
    if not yes:
        _confirm_drop("all dead letters" if every else _count_messages(len(set(ids))))
    return asyncio.run(_apply_to_letters(config, ids, _drop_letter, every=every))


def _check_selection(ids: Sequence[str], *, every: bool) -> None:
    """Raise UsageError unless there are either ids or --all."""
    if bool(ids) == every:
        raise UsageError("Name the messages by their ids, or give --all; `hummingbird queue list` shows them.")


def _confirm_drop(what: str) -> None:
    """Ask for confirmation. Raises click.Abort on "no", and UsageError when standard input is not a terminal."""
    if not sys.stdin.isatty():
        raise UsageError("Standard input is not a terminal, so nobody can confirm this: say --yes.")
    click.confirm(f"Delete {what}? This cannot be undone.", abort=True, err=True)


async def _load_letters(config: str | None) -> list[DeadLetterSummary]:
    async with _open_queue(config) as queue:
        return [summarize_letter(letter) for letter in await queue.list_dead_letters()]


async def _apply_to_letters(config: str | None, ids: Sequence[str], act: LetterAction, *, every: bool) -> int:
    """Apply `act` to each letter; report a missing one, go on with the others, and return the exit code."""
    missing = False
    async with _open_queue(config) as queue:
        wanted = _all_ids(queue) if every else _unique_ids(ids)
        count = 0
        async for letter_id in wanted:
            try:
                click.echo(await act(queue, letter_id))
                count += 1
            except UsageError as error:
                click.echo(f"hummingbird: {error}", err=True)
                missing = True
    if every and not count:
        click.echo("There are no dead letters.")
    return 1 if missing else 0


async def _all_ids(queue: Queue) -> AsyncIterator[str]:
    """Yield the ids of all dead letters, listing again until nothing new comes: SQS shows only some at a time."""
    seen: set[str] = set()
    while fresh := [letter.id for letter in await queue.list_dead_letters() if letter.id not in seen]:
        seen.update(fresh)
        for letter_id in fresh:
            yield letter_id


async def _unique_ids(ids: Sequence[str]) -> AsyncIterator[str]:
    for letter_id in dict.fromkeys(ids):
        yield letter_id


async def _retry_letter(queue: Queue, letter_id: str) -> str:
    return f"{letter_id} is in the queue again, as {await queue.retry_dead_letter(letter_id)}"


async def _drop_letter(queue: Queue, letter_id: str) -> str:
    await queue.delete_dead_letter(letter_id)
    return f"{letter_id} is deleted"


@asynccontextmanager
async def _open_queue(config: str | None) -> AsyncIterator[Queue]:
    configuration = load_config(find_config(config, os.environ, Path.cwd()), None)
    queue = open_queue(configuration.settings, os.environ)
    try:
        yield queue
    finally:
        await queue.close()


def _letter_text(letter: DeadLetterSummary) -> str:
    where = f"{letter.project}!{letter.merge_request}" if letter.merge_request else letter.project
    session = f"session {letter.session}" if letter.session else ""
    return "  ".join(filter(None, (letter.what, letter.workflow, where, session)))


def _letter_object(letter: DeadLetterSummary) -> dict[str, object]:
    return {
        "id": letter.id,
        "what": letter.what,
        "since": letter.since or None,
        "workflow": letter.workflow or None,
        "project": letter.project or None,
        "merge_request": letter.merge_request or None,
        "session": letter.session or None,
    }


def _count_messages(number: int) -> str:
    return "one message" if number == 1 else f"{number} messages"
