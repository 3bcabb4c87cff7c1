"""What the `queue` commands do: dead letters listed, sent anew or forgotten. Outcomes go to standard output."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click

from hummingbird.assembly.queueing import open_queue
from hummingbird.cli.queue_letters import Told, told
from hummingbird.config.load import find, load
from hummingbird.domain.errors import UsageFault
from hummingbird.ports.queue import Queue

Act = Callable[[Queue, str], Awaitable[str]]


def listed(config: str | None, *, as_json: bool) -> int:
    letters = asyncio.run(_letters(config))
    now = time.time()
    if as_json:
        click.echo(json.dumps([_entry(letter) for letter in letters], indent=2))
    elif letters:
        click.echo("\n".join(f"{letter.id}  {letter.age(now):>6}  {_about(letter)}" for letter in letters))
        click.echo("\nHave them done with `hummingbird queue retry`, or forget them with `queue drop`.", err=True)
    else:
        click.echo("Nothing was given up.")
    return 0


def retry(config: str | None, ids: Sequence[str], *, every: bool) -> int:
    _check(ids, every=every)
    return asyncio.run(_each(config, ids, _retried, every=every))


def drop(config: str | None, ids: Sequence[str], *, every: bool, yes: bool) -> int:
    _check(ids, every=every)
    if not yes:
        _ask("all that was given up" if every else _count(len(set(ids))))
    return asyncio.run(_each(config, ids, _dropped, every=every))


def _check(ids: Sequence[str], *, every: bool) -> None:
    """Raises UsageFault."""
    if bool(ids) == every:
        raise UsageFault("Name the messages by their ids, or take --all; `hummingbird queue list` shows them.")


def _ask(what: str) -> None:
    """Raises click.Abort, and UsageFault where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageFault("Nobody can be asked here whether that is meant: say --yes.")
    click.confirm(f"Forget {what}? This cannot be undone.", abort=True, err=True)


async def _letters(config: str | None) -> list[Told]:
    async with _opened(config) as queue:
        return [told(letter) for letter in await queue.dead()]


async def _each(config: str | None, ids: Sequence[str], act: Act, *, every: bool) -> int:
    """Goes on after one that is not there, and says so."""
    missing = False
    async with _opened(config) as queue:
        wanted = _all(queue) if every else _named(ids)
        count = 0
        async for letter_id in wanted:
            try:
                click.echo(await act(queue, letter_id))
                count += 1
            except UsageFault as error:
                click.echo(f"hummingbird: {error}", err=True)
                missing = True
    if every and not count:
        click.echo("Nothing was given up.")
    return 1 if missing else 0


async def _all(queue: Queue) -> AsyncIterator[str]:
    """SQS shows some only when others are gone, so it is asked until nothing new comes."""
    seen: set[str] = set()
    while fresh := [letter.id for letter in await queue.dead() if letter.id not in seen]:
        seen.update(fresh)
        for letter_id in fresh:
            yield letter_id


async def _named(ids: Sequence[str]) -> AsyncIterator[str]:
    for letter_id in dict.fromkeys(ids):
        yield letter_id


async def _retried(queue: Queue, letter_id: str) -> str:
    return f"{letter_id} is in the queue again, as {await queue.retry(letter_id)}"


async def _dropped(queue: Queue, letter_id: str) -> str:
    await queue.drop(letter_id)
    return f"{letter_id} is forgotten"


@asynccontextmanager
async def _opened(config: str | None) -> AsyncIterator[Queue]:
    configuration = load(find(config, os.environ, Path.cwd()), None)
    queue = open_queue(configuration.settings, os.environ)
    try:
        yield queue
    finally:
        await queue.close()


def _about(letter: Told) -> str:
    where = f"{letter.project}!{letter.merge_request}" if letter.merge_request else letter.project
    session = f"session {letter.session}" if letter.session else ""
    return "  ".join(filter(None, (letter.what, letter.workflow, where, session)))


def _entry(letter: Told) -> dict[str, object]:
    return {
        "id": letter.id,
        "what": letter.what,
        "since": letter.since or None,
        "workflow": letter.workflow or None,
        "project": letter.project or None,
        "merge_request": letter.merge_request or None,
        "session": letter.session or None,
    }


def _count(number: int) -> str:
    return "one message" if number == 1 else f"{number} messages"
