"""What the `sessions` commands do. What was asked for goes to standard output, all else to standard error."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.session_desk import SessionDesk, desk_of
from hummingbird.cli.lines import Masking, OneLine
from hummingbird.cli.printing import printed
from hummingbird.cli.session_lines import hit_lines, line, page, seconds_of, told
from hummingbird.config.load import find, load
from hummingbird.domain.envelope import context_json
from hummingbird.domain.errors import JournalTaken, ObjectsUnusable, UsageFault
from hummingbird.domain.journal import Entry, dump
from hummingbird.domain.sessions import summary
from hummingbird.domain.transcript import transcript
from hummingbird.ports.session_index import MATCH_BEGINS, MATCH_ENDS

_json = msgspec.json.Encoder()
_BOLD = ("\x1b[1m", "\x1b[0m")
_PLAIN = ("**", "**")


def listed(config: str | None, *, project: str, limit: int, as_json: bool) -> int:
    async def work(desk: SessionDesk) -> int:
        await desk.refresh(_progress)
        found = await desk.listed(limit, project)
        if as_json:
            _as_json([msgspec.to_builtins(one) for one in found])
        elif found:
            printed("\n".join(line(one, time.time()) for one in found))
        else:
            click.echo(f"There is no session in {desk.sessions.address}{' of ' + project if project else ''}.")
        return 0

    return _done(config, work)


def show(config: str | None, session: str, *, as_json: bool) -> int:
    async def work(desk: SessionDesk) -> int:
        session_id = await desk.named(session)
        entries = await desk.entries(session_id)
        if as_json:
            _raw(b"".join(map(dump, entries)))
        else:
            printed(f"{page(summary(entries, session_id))}\n\n{transcript(entries).rstrip()}")
        return 0

    return _done(config, work)


def search(config: str | None, words: Sequence[str], *, project: str, limit: int, as_json: bool) -> int:
    async def work(desk: SessionDesk) -> int:
        await desk.refresh(_progress)
        hits = await desk.search(" ".join(words), limit, project)
        if as_json:
            _as_json([msgspec.to_builtins(hit) for hit in hits])
            return 0 if hits else 1
        marks = _BOLD if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else _PLAIN
        for hit in hits:
            for one in hit_lines(hit):
                click.echo(_harmless(one).replace(MATCH_BEGINS, marks[0]).replace(MATCH_ENDS, marks[1]))
        if not hits:
            click.echo("Nothing was found. Fewer words find more; the beginning of the last word is enough.", err=True)
        return 0 if hits else 1

    return _done(config, work)


def replay(config: str | None, session: str, *, speed: float) -> int:
    async def work(desk: SessionDesk) -> int:
        entries = await desk.entries(await desk.named(session))
        began = before = entries[0].at if entries else 0.0
        for entry in entries:
            if speed:
                await asyncio.sleep(max(0.0, entry.at - before) / speed)
            before = entry.at
            printed("\n".join(f"{max(0.0, entry.at - began):>9.2f}s  {one}" for one in told(entry)) or "")
        return 0

    return _done(config, work)


def export(config: str | None, session: str, folder: str, form: str) -> int:
    async def work(desk: SessionDesk) -> int:
        session_id = await desk.named(session)
        if form == "folder":
            if folder == "-":
                raise UsageFault("A folder cannot be written to standard output: name one, or another --format.")
            place = await desk.exported(session_id, Path(folder))
            click.echo(f"Session {session_id} is in {place}; go on with --resume-session and --message.", err=True)
            return 0
        content = _content(form, await desk.entries(session_id))
        if folder == "-":
            _raw(content)
        else:
            await asyncio.to_thread(_written, Path(folder), content)
        return 0

    return _done(config, work)


def rebuild(config: str | None) -> int:
    async def work(desk: SessionDesk) -> int:
        count = await desk.rebuild(_progress)
        click.echo(f"The index has {count} session{'' if count == 1 else 's'} of {desk.sessions.address}.")
        return 0

    return _done(config, work)


def rm(
    config: str | None, ids: Sequence[str], older_than: str | None, *, project: str, dry_run: bool, yes: bool
) -> int:
    if bool(ids) == (older_than is not None):
        raise UsageFault("Name the sessions by their ids, or say --older-than 90d; `sessions list` shows them.")
    if ids and project:
        raise UsageFault("--project goes with --older-than: ids say which sessions they are.")
    moment = _moment(older_than) if older_than is not None else 0.0

    async def work(desk: SessionDesk) -> int:
        if ids:
            wanted = {await desk.named(one): "" for one in dict.fromkeys(ids)}
        else:
            wanted = {one.session_id: one.stamp for one in await desk.older_than(moment, project)}
        if not wanted:
            click.echo("There is nothing to remove.")
            return 0
        if dry_run:
            printed("\n".join(f"{one} would be removed" for one in wanted))
            return 0
        if not yes:
            _ask(f"{len(wanted)} session{'' if len(wanted) == 1 else 's'} of {desk.sessions.address}")
        return await _removed(desk, wanted)

    return _done(config, work)


async def _removed(desk: SessionDesk, wanted: Mapping[str, str]) -> int:
    """By their ids and the stamps that they had. Goes on after one that could not be removed, and says so."""
    left = False
    for session_id, stamp in wanted.items():
        try:
            gone = await desk.remove(session_id, stamp)
            click.echo(f"{session_id} {'is removed' if gone else 'went on meanwhile, or is gone already'}")
        except JournalTaken:
            click.echo(f"hummingbird: {session_id} is in use and was left alone.", err=True)
            left = True
        except ObjectsUnusable as error:
            click.echo(f"hummingbird: {session_id} was not removed. {error}", err=True)
            left = True
    return 1 if left else 0


def _moment(text: str) -> float:
    seconds = seconds_of(text)
    if seconds is None:
        raise UsageFault(f"--older-than {text!a} is no age: write a number and w, d, h or m, like 90d.")
    return time.time() - seconds


def _ask(what: str) -> None:
    """Raises click.Abort, and UsageFault where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageFault("Nobody can be asked here whether that is meant: say --yes, or --dry-run to see what it is.")
    click.confirm(f"Remove {what}? This cannot be undone.", abort=True, err=True)


def _content(form: str, entries: Sequence[Entry]) -> bytes:
    match form:
        case "journal":
            return b"".join(map(dump, entries))
        case "context":
            return context_json(entries)
        case _:
            return transcript(entries).encode("utf-8", "replace")


def _written(path: Path, content: bytes) -> None:
    """Never over something else. Raises UsageFault."""
    try:
        with path.open("xb") as file:
            path.chmod(0o600)
            file.write(content)
    except FileExistsError as error:
        raise UsageFault(f"{path} is there already; name another file.") from error
    except OSError as error:
        raise UsageFault(f"{path} cannot be written: {error.strerror}. Name another file.") from error


def _done(config: str | None, work: Callable[[SessionDesk], Coroutine[Any, Any, int]]) -> int:
    """Raises HummingbirdError for what it cannot begin with."""
    lines, masking = logging.StreamHandler(sys.stderr), Masking()
    lines.setFormatter(OneLine("hummingbird: %(message)s", masking=masking))
    lines.setLevel(logging.WARNING)
    logging.getLogger().addHandler(lines)
    try:
        configuration = load(find(config, os.environ, Path.cwd()), None)
        masking.configuration = lambda: configuration
        return asyncio.run(work(desk_of(configuration, os.environ, SystemClock())))
    finally:
        logging.getLogger().removeHandler(lines)


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty() and of > 50:
        click.echo(f"\rreading sessions: {done} of {of} …", err=True, nl=done + 50 >= of)


def _as_json(value: Any) -> None:
    _raw(msgspec.json.format(_json.encode(value), indent=2) + b"\n")


def _raw(content: bytes) -> None:
    click.echo(content, nl=False)


def _harmless(text: str) -> str:
    return "".join(char if char.isprintable() or char in MATCH_BEGINS + MATCH_ENDS else "·" for char in text)
