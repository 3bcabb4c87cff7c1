"""Where a service can be killed: before and after each call to what lies outside of it, and after each journal entry.

    watch(Path("points"), kill_at="forge POST discussions#1 after")

The adapters' own methods are wrapped in place, before anything is built; a wrapper counts, writes the point down and
calls what it wraps. At the chosen point the process kills itself: no handler, no `finally`, no flush.

A point is named by what is called and how often that was called before in this process, so that work that goes on
beside the run, such as events about the bot's own notes or checkpoints, hardly moves the names of the others.
"""

import inspect
import json
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from hummingbird.core.orders import EventEnvelope
from hummingbird.service.envelopes import parse_envelope

BEFORE, AFTER = "before", "after"
BOTH = (BEFORE, AFTER)
KINDS = ("journal", "forge", "queue", "store", "sandbox", "model")
_PROJECT = re.compile(r"^/projects/[^/]+/?")
_NAMES = re.compile(r"/(?:\d+|[0-9a-f]{40})(?=/|$)")
_SAME = re.compile(r"[0-9a-f]{8,}|\d{4}-\d\d-\d\d")  # names and days: the next run has others

What = Callable[..., str]  # what a call is called, from what it is given; empty: it is no point


def _verb(name: str) -> What:
    return lambda *_, **__: name


def _entry(_: object, entry: object) -> str:
    return type(entry).__name__


def _request(_: object, asked: Any) -> str:
    return f"{asked.method} {_NAMES.sub('', _PROJECT.sub('', asked.path)) or 'project'}"


def _said(body: str) -> str:
    envelope = parse_envelope(body)
    if isinstance(envelope, EventEnvelope):
        return f"{json.loads(envelope.body or '{}').get('object_kind', 'large')} event"
    return f"{envelope.cause.value} order"


def _sent(_: object, body: str, **__: object) -> str:
    return f"send {_said(body)}"


def _of_message(verb: str) -> What:
    return lambda _, message, *__: f"{verb} {_said(message.body)}"


def _object(verb: str) -> What:
    return lambda _, name, *__, **___: f"{verb} {_SAME.sub('…', name)}"


def _command(verb: str) -> What:
    """By its first word: checkpoints go on beside the commands of the run."""
    return lambda _, command, *__, **___: f"{verb} {command.split()[0]}"


@dataclass(frozen=True)
class Watched:
    """One method. `brings`: a call that asks whether there is something, and counts only when there was; what came
    names it."""

    kind: str
    room: str
    owner: str
    verb: str
    what: What | None = None
    when: tuple[str, ...] = BOTH
    brings: bool = False

    def wrap(self, reached: "Reached") -> None:
        owner = getattr(import_module(f"hummingbird.models.{self.room}"), self.owner)
        inner = getattr(owner, self.verb)
        setattr(owner, self.verb, self._wrapped(inner, reached))

    def _wrapped(self, inner: Callable[..., Any], reached: "Reached") -> Callable[..., Any]:
        what = self.what or _verb(self.verb)
        if self.brings:
            return _bringing(inner, lambda found: reached(self.kind, f"{self.verb} {_said(found.body)}", AFTER))

        def begin(*given: Any, **named: Any) -> Callable[[], None]:
            name = what(*given, **named)
            number = reached.number(self.kind, name)
            if BEFORE in self.when:
                reached.tell(self.kind, name, number, BEFORE)
            return lambda: reached.tell(self.kind, name, number, AFTER)

        if inspect.isasyncgenfunction(inner):
            return _flowing(inner, begin)
        return _awaited(inner, begin) if inspect.iscoroutinefunction(inner) else _plain(inner, begin)


def _rows(kind: str, room: str, owner: str, verbs: str, what: Callable[[str], What] | None = None) -> Iterator[Watched]:
    for verb in verbs.split():
        yield Watched(kind, room, owner, verb, what(verb) if what else None)


def _queue(room: str, owner: str) -> Iterator[Watched]:
    """Heart-beats come by the clock and are no points."""
    yield Watched("queue", room, owner, "send", _sent)
    yield Watched("queue", room, owner, "receive", brings=True)
    yield from _rows("queue", room, owner, "delete postpone", _of_message)


WATCHED: tuple[Watched, ...] = (
    Watched("journal", "stores.journal", "FileJournal", "append", _entry, (AFTER,)),
    Watched("journal", "stores.bucket_journal", "BucketJournal", "append", _entry, (AFTER,)),
    Watched("journal", "stores.bucket_journal", "BucketJournal", "commit"),
    Watched("forge", "forge.client", "Client", "_sent", _request),
    *_queue("queues.sqlite", "SqliteQueue"),
    *_queue("queues.sqs", "SqsQueue"),
    *_rows("store", "stores.folder_objects", "FolderObjects", "put get names delete", _object),
    *_rows("store", "stores.objects", "BucketObjects", "put look swap listed delete put_flow flow", _object),
    *_rows("store", "stores.archives", "FolderArchives", "put get", lambda verb: _verb(f"{verb} archive")),
    *_rows("store", "stores.known_failures", "SqliteKnownFailures", "seen known_many analysed"),
    *_rows("store", "stores.spending", "SqliteSpending", "add"),
    *_rows("sandbox", "sandboxes.command", "CommandSandbox", "exec stream_exec", _command),
    *_rows("sandbox", "sandboxes.command", "CommandSandbox", "start stream_to_file read_file_iter cleanup linger"),
    *_rows("model", "models.http_model", "HttpModel", "generate"),
)


@dataclass
class Reached:
    """Writes each point down as it is reached, and ends the process at one of them."""

    file: int
    kill_at: str
    _counted: Counter[str] = field(default_factory=Counter)

    def __call__(self, kind: str, name: str, when: str) -> None:
        self.tell(kind, name, self.number(kind, name), when)

    def number(self, kind: str, name: str) -> int:
        self._counted[f"{kind} {name}"] += 1
        return self._counted[f"{kind} {name}"]

    def tell(self, kind: str, name: str, number: int, when: str) -> None:
        point = f"{kind} {name}#{number} {when}"
        os.write(self.file, f"{point}\n".encode())
        if point == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def watch(written: Path, kill_at: str = "") -> None:
    """In this process, for good. `written`: the file that gets the points that were reached, a line each."""
    reached = Reached(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), kill_at)
    for each in WATCHED:
        each.wrap(reached)


Begin = Callable[..., Callable[[], None]]


def _awaited(inner: Callable[..., Awaitable[Any]], begin: Begin) -> Callable[..., Awaitable[Any]]:
    @wraps(inner)
    async def outer(*given: Any, **named: Any) -> Any:
        end = begin(*given, **named)
        answer = await inner(*given, **named)
        end()
        return answer

    return outer


def _plain(inner: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    @wraps(inner)
    def outer(*given: Any, **named: Any) -> Any:
        end = begin(*given, **named)
        answer = inner(*given, **named)
        end()
        return answer

    return outer


def _flowing(inner: Callable[..., AsyncGenerator[Any, None]], begin: Begin) -> Callable[..., Any]:
    @wraps(inner)
    async def outer(*given: Any, **named: Any) -> AsyncGenerator[Any, None]:
        end = begin(*given, **named)
        async with aclosing(inner(*given, **named)) as pieces:
            async for piece in pieces:
                yield piece
        end()

    return outer


def _bringing(inner: Callable[..., Awaitable[Any]], tell: Callable[[Any], None]) -> Callable[..., Awaitable[Any]]:
    @wraps(inner)
    async def outer(*given: Any, **named: Any) -> Any:
        found = await inner(*given, **named)
        for one in found[:1]:
            tell(one)
        return found

    return outer
