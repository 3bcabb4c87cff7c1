"""How `hummingbird demo` looks: progress on standard error while it works, the note on standard output."""

import asyncio
import logging
import os
import re
import tempfile
from pathlib import Path

import click

from hummingbird.assembly.demo import Shown, case_of, demo
from hummingbird.assembly.models import default_model
from hummingbird.cli.lines import OneLine
from hummingbird.cli.progress import Progress
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.limits import DEMO_S


def run(case: str, save: str | None, *, timeout: float | None, verbose: bool) -> int:
    """Raises UsageFault."""
    chosen = case_of(case)
    folder = _folder(save)
    model = default_model(os.environ)
    click.secho(f"{chosen.about['title']}\n{click.wrap_text(str(chosen.about['shows']), 100)}\n", err=True)
    click.secho(f"Model: {model}{'; no key is set, so rules read the logs' if model == 'digest' else ''}.", err=True)
    _log_to_terminal()
    shown = asyncio.run(
        demo(
            chosen,
            folder,
            os.environ,
            told=_tell,
            on_event=Progress(verbose=verbose),
            patience_s=timeout or DEMO_S,
        )
    )
    if not shown.note:
        click.echo(f"No note was posted, as it should be. {shown.reason}")
        return 0
    click.echo(shown.note if verbose else _folded(shown.note))
    _tell_where(shown)
    return 1 if shown.failed else 0


def _folded(note: str) -> str:
    """As a person sees it in GitLab, where the transcript is folded away and a comment is hidden."""
    shown = re.sub(r"\A<!--.*?-->\s*", "", note, flags=re.DOTALL)
    return re.sub(
        r"<details><summary>(.*?)</summary>.*</details>",
        lambda found: f"▸ {found[1]} ({found[0].count(chr(10)):,} lines, shown with -v)",
        shown,
        flags=re.DOTALL,
    )


def _folder(save: str | None) -> Path:
    if save is None:
        return Path(tempfile.mkdtemp(prefix="hummingbird-demo-"))
    folder = Path(save)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageFault(f"{folder} is not empty; name another folder for --save.")
    except OSError as error:
        raise UsageFault(f"{folder} cannot be used: {error.strerror}. Name another folder for --save.") from error
    return folder


def _log_to_terminal() -> None:
    """What the service decides, and why: the part of a demonstration that a note does not show."""
    shown = logging.StreamHandler()
    shown.setFormatter(OneLine("  %(message)s"))
    log = logging.getLogger("hummingbird")
    log.setLevel(logging.INFO)
    log.handlers = [shown]


def _tell(sentence: str) -> None:
    click.secho(sentence, err=True)


def _tell_where(shown: Shown) -> None:
    _tell(
        f"\nThis note was posted to {shown.url} as a reply to its placeholder.\n"
        f"Journal, transcript and sandbox: {shown.session}\n"
        f"Everything else it left behind:  {shown.folder}\n"
        "Next: `hummingbird init` writes a configuration for your GitLab, `hummingbird doctor` checks it."
    )
