"""`hummingbird sessions`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module
from typing import Any

import click

from hummingbird.cli.options import as_json as json_option
from hummingbird.cli.options import config_file, verbose

_session = click.argument("session", metavar="ID")
_project = click.option("--project", default="", metavar="PATH", help="Those of this project only.")
_limit = click.option("--limit", "-n", default=20, show_default=True, type=click.IntRange(1, 1000), help="At most.")


@click.group()
def sessions() -> None:
    """Look at sessions: what ran, what was said, what it cost; find them by their words, export or remove them.

    Sessions are those of the configured store (session_store). An id may be cut short as long as it is clear whose it
    is. Nothing here asks a model or GitLab.

    \b
      hummingbird sessions list
      hummingbird sessions search "NullPointerException parser"
      hummingbird sessions show 3f2a8c
      hummingbird sessions rm --older-than 90d
    """


@sessions.command(name="list")
@_project
@_limit
@json_option
@config_file
@verbose
def listed(project: str, limit: int, as_json: bool, config: str | None) -> None:
    """Show the last sessions, one a line: id, age, how it ended, answers, cost, what it is about.

    \b
      hummingbird sessions list --project acme/widgets -n 50
    """
    sys.exit(_work().listed(config, project=project, limit=limit, as_json=as_json))


@sessions.command()
@_session
@json_option
@config_file
@verbose
def show(session: str, as_json: bool, config: str | None) -> None:
    """Show one session: its summary and its transcript. --json gives its journal, entry by entry.

    \b
      hummingbird sessions show 3f2a8c
    """
    sys.exit(_work().show(config, session, as_json=as_json))


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@_project
@_limit
@json_option
@config_file
@verbose
def search(words: tuple[str, ...], project: str, limit: int, as_json: bool, config: str | None) -> None:
    """Find what was said, run or found in any session. Put words that belong together in quotes.

    \b
      hummingbird sessions search connection refused
      hummingbird sessions search '"connection refused"' --project acme/widgets
    """
    sys.exit(_work().search(config, words, project=project, limit=limit, as_json=as_json))


@sessions.command()
@_session
@click.option("--speed", default=0.0, type=click.FloatRange(0.0), help="Times the pace it had; 0 (default): at once.")
@config_file
@verbose
def replay(session: str, speed: float, config: str | None) -> None:
    """Show a session as it happened, entry after entry with its times. Nothing is run again.

    \b
      hummingbird sessions replay 3f2a8c --speed 10
    """
    sys.exit(_work().replay(config, session, speed=speed))


@sessions.command()
@_session
@click.argument("folder", metavar="FOLDER|-")
@click.option(
    "--format",
    "form",
    type=click.Choice(["folder", "journal", "context", "transcript"]),
    default=None,
    help="folder: all its files (default); journal, context (chat messages) or transcript: one file, - is stdout.",
)
@config_file
@verbose
def export(session: str, folder: str, form: str | None, config: str | None) -> None:
    """Copy a session out of the store, with all its files, or one of them.

    \b
      hummingbird sessions export 3f2a8c /tmp/look      # for: hummingbird run --resume-session /tmp/look …
      hummingbird sessions export 3f2a8c - --format context
    """
    sys.exit(_work().export(config, session, folder, form or ("context" if folder == "-" else "folder")))


@sessions.command()
@config_file
@verbose
def rebuild(config: str | None) -> None:
    """Make the index for `list` and `search` anew, from the journals alone."""
    sys.exit(_work().rebuild(config))


@sessions.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--older-than", metavar="AGE", help="All that nothing happened in for so long: 90d, 12h, 2w.")
@_project
@click.option("--dry-run", is_flag=True, help="Only say which ones.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where nobody can be asked.")
@config_file
@verbose
def rm(
    *, ids: tuple[str, ...], older_than: str | None, project: str, dry_run: bool, yes: bool, config: str | None
) -> None:
    """Remove sessions with everything they have. One that is in use is left alone. This cannot be undone.

    \b
      hummingbird sessions rm --older-than 90d --yes
      hummingbird sessions rm 3f2a8c
    """
    sys.exit(_work().rm(config, ids, older_than, project=project, dry_run=dry_run, yes=yes))


def _work() -> Any:
    return import_module("hummingbird.cli.sessions_work")
