"""The commands of `hummingbird sessions`. They print results to standard output, everything else to standard error."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from hummingbird.app.console import LogMasker, OneLineFormatter, SystemClock, print_text
from hummingbird.app.session_catalog import SessionCatalog, open_session_catalog
from hummingbird.cli.options import complete_session, config_option, json_option, verbose_option
from hummingbird.config.loader import find_config, load_config
from hummingbird.core.context_json import encode_context_json
from hummingbird.core.errors import ObjectStoreUnusable, SessionTaken, UsageError
from hummingbird.core.journal import (
    TURN,
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    Delegated,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    NoticeShown,
    RunEnded,
    RunStarted,
    SessionOpened,
    SessionRenamed,
    ToolDecided,
    ToolFinished,
    ToolStarted,
    TurnUndone,
    UserSaid,
    VerdictRecorded,
    dump_entry,
)
from hummingbird.core.projections import render_transcript
from hummingbird.core.protocols.sessions import MATCH_BEGINS, MATCH_ENDS, SearchHit
from hummingbird.core.sessions import SessionSummary, summarise_session
from hummingbird.core.text import shorten_line
from hummingbird.core.verdicts import render_verdict

_session_argument = click.argument("session", metavar="ID", shell_complete=complete_session)
_project_option = click.option("--project", default="", metavar="PATH", help="Only sessions of this project.")
_limit_option = click.option(
    "--limit", "-n", default=20, show_default=True, type=click.IntRange(1, 1000), help="Show at most this many."
)


@click.group()
def sessions() -> None:
    """List, search, show, replay, export and remove sessions.

    The commands read the configured store (session_store). You can shorten an id as long as it stays unique. None of
    the commands contacts a model or GitLab.

    \b
      hummingbird sessions list
      hummingbird sessions search "NullPointerException parser"
      hummingbird sessions show 3f2a8c
      hummingbird sessions rm --older-than 90d
    """


@sessions.command(name="list")
@_project_option
@_limit_option
@json_option
@config_option
@verbose_option
def list_command(project: str, limit: int, as_json: bool, config: str | None) -> None:
    """List the latest sessions, one per line.

    Each line has the id, age, how the session ended, the number of answers, the cost and the subject.

    \b
      hummingbird sessions list --project acme/widgets -n 50
    """
    sys.exit(print_sessions(config, project=project, limit=limit, as_json=as_json))


@sessions.command()
@_session_argument
@json_option
@config_option
@verbose_option
def show(session: str, as_json: bool, config: str | None) -> None:
    """Show the summary and transcript of a session.

    With --json, print its journal entry by entry.

    \b
      hummingbird sessions show 3f2a8c
    """
    sys.exit(print_session(config, session, as_json=as_json))


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@_project_option
@_limit_option
@json_option
@config_option
@verbose_option
def search(words: tuple[str, ...], project: str, limit: int, as_json: bool, config: str | None) -> None:
    """Search the text of all sessions. Put a phrase in quotes.

    \b
      hummingbird sessions search connection refused
      hummingbird sessions search '"connection refused"' --project acme/widgets
    """
    sys.exit(print_hits(config, words, project=project, limit=limit, as_json=as_json))


@sessions.command()
@_session_argument
@click.option(
    "--speed", default=0.0, type=click.FloatRange(0.0), help="Multiple of the original speed; 0 (default): no delays."
)
@config_option
@verbose_option
def replay(session: str, speed: float, config: str | None) -> None:
    """Print a session entry by entry with its times. Nothing is executed again.

    \b
      hummingbird sessions replay 3f2a8c --speed 10
    """
    sys.exit(replay_session(config, session, speed=speed))


@sessions.command()
@_session_argument
@click.argument("folder", metavar="FOLDER|-")
@click.option(
    "--format",
    "form",
    type=click.Choice(["folder", "journal", "context", "transcript"]),
    default=None,
    help="folder: all files of the session (default); journal, context (chat messages) or transcript: one file.",
)
@config_option
@verbose_option
def export(session: str, folder: str, form: str | None, config: str | None) -> None:
    """Copy a session out of the store.

    Export copies all its files to a new folder, or one of them to a file or, with -, to standard output.

    \b
      hummingbird sessions export 3f2a8c /tmp/look      # for: hummingbird run --resume-session /tmp/look …
      hummingbird sessions export 3f2a8c - --format context
    """
    sys.exit(export_session(config, session, folder, form or ("context" if folder == "-" else "folder")))


@sessions.command()
@config_option
@verbose_option
def rebuild(config: str | None) -> None:
    """Rebuild the index of `list` and `search` from the journals."""
    sys.exit(rebuild_index(config))


@sessions.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=complete_session)
@click.option("--older-than", metavar="AGE", help="Remove sessions unchanged for this long: 90d, 12h, 2w.")
@_project_option
@click.option("--dry-run", is_flag=True, help="Only print which sessions would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation. Required when not run in a terminal.")
@config_option
@verbose_option
def rm(
    *, ids: tuple[str, ...], older_than: str | None, project: str, dry_run: bool, yes: bool, config: str | None
) -> None:
    """Remove sessions and all their files permanently. Sessions in use are skipped.

    \b
      hummingbird sessions rm --older-than 90d --yes
      hummingbird sessions rm 3f2a8c
    """
    sys.exit(remove_sessions(config, ids, older_than, project=project, dry_run=dry_run, yes=yes))


_AGE_UNITS = (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60))
_MAX_CHARS = 110


def age_text(seconds: float) -> str:
    for unit, worth in _AGE_UNITS[1:]:
        if seconds >= worth:
            return f"{int(seconds // worth)}{unit}"
    return f"{max(0, int(seconds))}s"


def parse_age(text: str) -> float | None:
    """Return the seconds that a text like 90d, 12h or 2w means; None for any other text."""
    unit = dict(_AGE_UNITS).get(text[-1:], 0)
    number = text[:-1]
    return int(number) * float(unit) if unit and number.isascii() and number.isdigit() and len(number) < 7 else None


def session_line(one: SessionSummary, now: float) -> str:
    what = one.title or one.model or "nothing was said"
    cost = f"${one.usd:.4f}" + ("+?" if one.unpriced else "")
    old = age_text(now - one.changed_at)
    return f"{one.session_id}  {old:>5}  {one.state:<16}  {one.answers:>3} answers  {cost:>9}  {what}"


def session_page(one: SessionSummary) -> str:
    """Return the summary that `sessions show` prints above the transcript."""
    rows = (
        ("session", one.session_id),
        ("about", one.title),
        ("commit", one.about.sha),
        ("model", one.model),
        ("began", _time_text(one.began_at)),
        ("changed", _time_text(one.changed_at)),
        ("ended", one.state),
        ("runs", f"{one.runs} with {one.answers} answers, {one.entries} entries"),
    )
    return "\n".join(f"{name:<8} {value}" for name, value in rows if value)


def hit_lines(hit: SearchHit) -> Iterator[str]:
    """Yield the lines of a search hit; the matching words stand between MATCH_BEGINS and MATCH_ENDS."""
    snippet = " ".join(hit.snippet.split())
    yield f"{hit.summary.session_id}  {age_text(time.time() - hit.at):>5}  {hit.summary.title}"
    yield f"    {hit.number:>5}  {hit.who}: {snippet}"


def entry_lines(entry: JournalEntry) -> Iterator[str]:
    """Yield the lines that `sessions replay` prints for an entry."""
    match entry:
        case SessionOpened():
            yield f"session {entry.session_id}: {len(entry.tools)} tools, a prompt of {len(entry.system):,} letters"
        case RunStarted():
            yield f"▶ run {entry.run_id[:12]} with {entry.model}{' goes on' if entry.resumed else ''}"
        case UserSaid():
            yield f"{entry.source.value}: {shorten_line(' '.join(entry.text.split()), _MAX_CHARS)}"
        case NoticeShown():
            yield f"notice ({entry.notice.value}): {shorten_line(' '.join(entry.text.split()), _MAX_CHARS)}"
        case VerdictRecorded():
            yield f"rules: {shorten_line(render_verdict(entry.verdict), _MAX_CHARS)}"
        case ModelCalled():
            what = f"{entry.messages} messages" if entry.purpose == TURN else f"for a {entry.purpose}"
            yield f"? {entry.model} is asked, {what}" + f", try {entry.attempt}" * (entry.attempt > 1)
        case ModelAnswered():
            if entry.message.text:
                yield f"· {shorten_line(' '.join(entry.message.text.split()), _MAX_CHARS)}"
            yield from (f"→ {call.name} {shorten_line(call.arguments, _MAX_CHARS)}" for call in entry.message.calls)
        case ModelFailed():
            yield f"! {entry.sentence}"
        case ModelSwitched():
            yield f"! going on with {entry.model}: {entry.reason}"
        case ToolStarted():
            yield f"  {entry.name} begins"
        case ToolFinished():
            yield f"  {entry.name}: {entry.outcome.value}, {len(entry.text.encode('utf-8', 'replace')):,} bytes"
        case Delegated():
            if entry.arguments:
                arguments = shorten_line(entry.arguments, _MAX_CHARS)
                yield f"    sub-agent {entry.task}: wanted {entry.entry.name} {arguments}"
            yield f"    sub-agent {entry.task}: {_sub_agent_line(entry.entry)}"
        case Compacted():
            tokens = f"{entry.tokens_before:,} → {entry.tokens_after:,} tokens"
            yield f"· entries {entry.since} to {entry.until} became a summary, {tokens}"
        case CompactionSkipped():
            yield f"· no room was made: {entry.reason}"
        case CompactionUndone():
            yield "· the last summary was undone"
        case TurnUndone():
            yield f"· undone: {shorten_line(' '.join(entry.text.split()), _MAX_CHARS)}"
        case SessionRenamed(title=title):
            yield f"· renamed: {title}"
        case RunEnded():
            yield f"■ {entry.reason.value}" + (f": {entry.sentence}" if entry.sentence else "")
        case _:
            yield type(entry).__name__


def _sub_agent_line(own: ToolDecided | ToolStarted | ToolFinished) -> str:
    """Return the line for a sub-agent's tool call, with its arguments: no entry of the session itself has them."""
    match own:
        case ToolDecided():
            why = f"{own.by}: {own.reason}" if own.reason else own.by
            return f"{own.name} is {own.decision} by {shorten_line(why, _MAX_CHARS)}"
        case ToolStarted():
            return f"→ {own.name} {shorten_line(own.arguments, _MAX_CHARS)}"
        case ToolFinished():
            return f"{own.name}: {own.outcome.value}, {own.seconds:.1f} s"


def _time_text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if at else ""


_json = msgspec.json.Encoder()
_BOLD = ("\x1b[1m", "\x1b[0m")
_PLAIN = ("**", "**")


def print_sessions(config: str | None, *, project: str, limit: int, as_json: bool) -> int:
    async def work(catalog: SessionCatalog) -> int:
        await catalog.refresh(_print_progress)
        found = await catalog.list_sessions(limit, project)
        if as_json:
            _print_json([msgspec.to_builtins(one) for one in found])
        elif found:
            print_text("\n".join(session_line(one, time.time()) for one in found))
        else:
            click.echo(f"There is no session in {catalog.sessions.address}{' of ' + project if project else ''}.")
        return 0

    return _run_with_catalog(config, work)


def print_session(config: str | None, session: str, *, as_json: bool) -> int:
    async def work(catalog: SessionCatalog) -> int:
        session_id = await catalog.find_session_id(session)
        entries = await catalog.load_entries(session_id)
        if as_json:
            _print_bytes(b"".join(map(dump_entry, entries)))
        else:
            print_text(
                f"{session_page(summarise_session(entries, session_id))}\n\n{render_transcript(entries).rstrip()}"
            )
        return 0

    return _run_with_catalog(config, work)


def print_hits(config: str | None, words: Sequence[str], *, project: str, limit: int, as_json: bool) -> int:
    async def work(catalog: SessionCatalog) -> int:
        await catalog.refresh(_print_progress)
        hits = await catalog.search(" ".join(words), limit, project)
        if as_json:
            _print_json([msgspec.to_builtins(hit) for hit in hits])
            return 0 if hits else 1
        marks = _BOLD if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else _PLAIN
        for hit in hits:
            for one in hit_lines(hit):
                click.echo(_printable(one).replace(MATCH_BEGINS, marks[0]).replace(MATCH_ENDS, marks[1]))
        if not hits:
            click.echo("Nothing was found. Fewer words find more; the beginning of the last word is enough.", err=True)
        return 0 if hits else 1

    return _run_with_catalog(config, work)


def replay_session(config: str | None, session: str, *, speed: float) -> int:
    async def work(catalog: SessionCatalog) -> int:
        entries = await catalog.load_entries(await catalog.find_session_id(session))
        began = before = entries[0].at if entries else 0.0
        for entry in entries:
            if speed:
                await asyncio.sleep(max(0.0, entry.at - before) / speed)
            before = entry.at
            print_text("\n".join(f"{max(0.0, entry.at - began):>9.2f}s  {one}" for one in entry_lines(entry)) or "")
        return 0

    return _run_with_catalog(config, work)


def export_session(config: str | None, session: str, folder: str, form: str) -> int:
    async def work(catalog: SessionCatalog) -> int:
        session_id = await catalog.find_session_id(session)
        if form == "folder":
            if folder == "-":
                raise UsageError("A folder cannot be written to standard output: name one, or another --format.")
            place = await catalog.export_session(session_id, Path(folder))
            click.echo(
                f"Session {session_id} is in {place}; continue it with --resume-session and --message.", err=True
            )
            return 0
        content = _export_content(form, await catalog.load_entries(session_id))
        if folder == "-":
            _print_bytes(content)
        else:
            await asyncio.to_thread(_write_new_file, Path(folder), content)
        return 0

    return _run_with_catalog(config, work)


def rebuild_index(config: str | None) -> int:
    async def work(catalog: SessionCatalog) -> int:
        count = await catalog.rebuild(_print_progress)
        click.echo(f"The index has {count} session{'' if count == 1 else 's'} of {catalog.sessions.address}.")
        return 0

    return _run_with_catalog(config, work)


def remove_sessions(
    config: str | None, ids: Sequence[str], older_than: str | None, *, project: str, dry_run: bool, yes: bool
) -> int:
    if bool(ids) == (older_than is not None):
        raise UsageError("Name the sessions by their ids, or say --older-than 90d; `sessions list` shows them.")
    if ids and project:
        raise UsageError("--project goes with --older-than: ids say which sessions they are.")
    moment = _cutoff_time(older_than) if older_than is not None else 0.0

    async def work(catalog: SessionCatalog) -> int:
        if ids:
            wanted = {await catalog.find_session_id(one): "" for one in dict.fromkeys(ids)}
        else:
            wanted = {one.session_id: one.stamp for one in await catalog.list_older_than(moment, project)}
        if not wanted:
            click.echo("There is nothing to remove.")
            return 0
        if dry_run:
            print_text("\n".join(f"{one} would be removed" for one in wanted))
            return 0
        if not yes:
            _confirm_removal(f"{len(wanted)} session{'' if len(wanted) == 1 else 's'} of {catalog.sessions.address}")
        return await _remove_each(catalog, wanted)

    return _run_with_catalog(config, work)


async def _remove_each(catalog: SessionCatalog, wanted: Mapping[str, str]) -> int:
    """Remove the sessions in `wanted` (id → stamp); report one that cannot be removed and go on with the others."""
    left = False
    for session_id, stamp in wanted.items():
        try:
            gone = await catalog.remove(session_id, stamp)
            click.echo(f"{session_id} {'is removed' if gone else 'changed meanwhile, or is removed already'}")
        except SessionTaken:
            click.echo(f"hummingbird: {session_id} is in use and was left alone.", err=True)
            left = True
        except ObjectStoreUnusable as error:
            click.echo(f"hummingbird: {session_id} was not removed. {error}", err=True)
            left = True
    return 1 if left else 0


def _cutoff_time(text: str) -> float:
    seconds = parse_age(text)
    if seconds is None:
        raise UsageError(f"--older-than {text!a} is not an age: write a number and w, d, h or m, like 90d.")
    return time.time() - seconds


def _confirm_removal(what: str) -> None:
    """Ask for confirmation. Raises click.Abort on "no", and UsageError when standard input is not a terminal."""
    if not sys.stdin.isatty():
        raise UsageError(
            "Standard input is not a terminal, so nobody can confirm this: say --yes, or --dry-run to see what it is."
        )
    click.confirm(f"Remove {what}? This cannot be undone.", abort=True, err=True)


def _export_content(form: str, entries: Sequence[JournalEntry]) -> bytes:
    match form:
        case "journal":
            return b"".join(map(dump_entry, entries))
        case "context":
            return encode_context_json(entries)
        case _:
            return render_transcript(entries).encode("utf-8", "replace")


def _write_new_file(path: Path, content: bytes) -> None:
    """Write a new private file. Raises UsageError when it exists or cannot be written."""
    try:
        with path.open("xb") as file:
            path.chmod(0o600)
            file.write(content)
    except FileExistsError as error:
        raise UsageError(f"{path} is there already; name another file.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. Name another file.") from error


def _run_with_catalog(config: str | None, work: Callable[[SessionCatalog], Coroutine[Any, Any, int]]) -> int:
    """Open the configured session catalog, run `work` with it and return its exit code. Raises HummingbirdError."""
    lines, masking = logging.StreamHandler(sys.stderr), LogMasker()
    lines.setFormatter(OneLineFormatter("hummingbird: %(message)s", masking=masking))
    lines.setLevel(logging.WARNING)
    logging.getLogger().addHandler(lines)
    try:
        configuration = load_config(find_config(config, os.environ, Path.cwd()), None)
        masking.configuration = lambda: configuration
        return asyncio.run(work(open_session_catalog(configuration, os.environ, SystemClock())))
    finally:
        logging.getLogger().removeHandler(lines)


def _print_progress(done: int, of: int) -> None:
    if sys.stderr.isatty() and of > 50:
        click.echo(f"\rreading sessions: {done} of {of} …", err=True, nl=done + 50 >= of)


def _print_json(value: Any) -> None:
    _print_bytes(msgspec.json.format(_json.encode(value), indent=2) + b"\n")


def _print_bytes(content: bytes) -> None:
    click.echo(content, nl=False)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in MATCH_BEGINS + MATCH_ENDS else "·" for char in text)
