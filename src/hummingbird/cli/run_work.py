"""`hummingbird run`: reads what is to be looked at, prints answers to standard output, all else to standard error."""

import asyncio
import os
import sys
from pathlib import Path

import click

from hummingbird.assembly.asking import Nothing
from hummingbird.assembly.run_parts import Parts, Ran, Wish
from hummingbird.assembly.running import run as run_orders
from hummingbird.assembly.sandboxes import Chosen, check_chosen
from hummingbird.cli.lines import logged
from hummingbird.cli.printing import printed
from hummingbird.cli.progress import Progress
from hummingbird.config.load import find, load
from hummingbird.domain.errors import InputUnreadable
from hummingbird.domain.limits import EVENT_BYTES

__all__ = ["Chosen", "Wish", "run"]


def run(config: str | None, wish: Wish, chosen: Chosen, *, verbose: bool) -> int:
    """Raises HummingbirdError for what it cannot begin with."""
    configuration = load(find(config, os.environ, Path.cwd()), os.environ)
    check_chosen(configuration.settings, chosen)
    body = None if wish.event_file is None else _content(wish.event_file)
    parts = Parts(
        configuration=configuration, environment=os.environ, chosen=chosen, on_event=Progress(verbose=verbose)
    )
    codes: list[int] = []
    try:
        with logged(configuration, verbose=verbose):
            asyncio.run(run_orders(parts, wish, body, lambda done: codes.append(_shown(done))))
    except KeyboardInterrupt:
        _tell_how_to_go_on(wish)
        raise
    return max(codes)


def _content(path: str) -> bytes:
    """Raises InputUnreadable."""
    try:
        content = sys.stdin.buffer.read(EVENT_BYTES + 1) if path == "-" else _read(Path(path))
    except OSError as error:
        raise InputUnreadable(f"The event file {path} cannot be read: {error.strerror}. Name another one.") from error
    if len(content) > EVENT_BYTES:
        raise InputUnreadable(f"{path} is larger than {EVENT_BYTES:,} bytes, and no webhook is: name another file.")
    return content


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(EVENT_BYTES + 1)


def _shown(done: Ran | Nothing) -> int:
    """The exit code that it means."""
    if isinstance(done, Nothing):
        _tell(f"hummingbird: {done.sentence}")
        return 1
    printed(f"{done.text}\n\n{done.bill}" if done.text else done.bill)
    for sentence in done.remarks:
        _tell(f"hummingbird: {sentence}")
    if done.saved is not None:
        _tell(f"The session is in {done.saved}; go on with --resume-session and --message.")
    if done.posted:
        _tell(f"Posted to {done.posted}")
    return done.exit_code


def _tell_how_to_go_on(wish: Wish) -> None:
    if folder := wish.save or wish.resume:
        _tell(f"What was done until now is in {folder}; go on with --resume-session {folder} --message 'Go on.'")
    elif wish.execute:
        _tell("The merge request has a note of ours without a result; a reply to that note goes on with the session.")


def _tell(sentence: str) -> None:
    click.echo(sentence, err=True)
