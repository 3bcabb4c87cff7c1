"""What `init` does: the files of a beginning, written whole or not at all, and the steps that follow."""

import os
from collections.abc import Mapping
from pathlib import Path

import click

from hummingbird.config.load import FILE_NAME
from hummingbird.config.needed import SECRET_VARIABLE
from hummingbird.config.starting import PROMPTS_FOLDER, embedded, starting
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE
from hummingbird.domain.errors import PlatformError, UsageFault

NEXT = f"""\
Next:
  1. Set {ORCHESTRATOR_VARIABLE} to the token that notes are written with: an access token of your project or
     group with the role Developer and the scope api. A project's own goes to {ORCHESTRATOR_VARIABLE}_GROUP_PROJECT.
  2. For projects that are not public, make a second token that only reads (role Reporter, scope read_api), put it into
     a variable of any other name, and write that name to data_sources.gitlab.token_env.
  3. Set the key of your model, like ANTHROPIC_API_KEY, GOOGLE_API_KEY or OPENAI_API_KEY. Without one, `digest` does the
     work: it reads logs by rules, costs nothing and asks nobody.
  4. Set {SECRET_VARIABLE} to a long random text, and add a webhook to your project or group
     (Settings > Webhooks): the address of your `serve` with /webhooks/gitlab behind it, that text as its secret token,
     and these triggers: Pipeline events, Merge request events, Comments, Confidential comments. Without the last one,
     nobody can answer internal notes.
  5. hummingbird config check    finds mistakes in the file
     hummingbird doctor          tries every part for real, and says what to do about it
     hummingbird serve           starts working"""


def run(folder: str, *, force: bool) -> int:
    """Raises UsageFault, PlatformError."""
    place = Path(folder)
    files = _files(place)
    if not force:
        _check_free(files)
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, text, force=force)
            click.echo(f"Wrote {path}")
    except FileExistsError as error:
        raise UsageFault(f"{error.filename} came in the way meanwhile. {_HOW}") from error
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise PlatformError(f"{error.filename or place} cannot be written: {why}. Name another folder.") from error
    click.echo(f"\n{NEXT}")
    return 0


_HOW = "Choose another folder, move away what is there, or replace it with --force."


def _files(place: Path) -> Mapping[Path, str]:
    prompts = embedded().prompts
    return {
        place / FILE_NAME: starting(),
        **{place / PROMPTS_FOLDER / f"{name}.md": text for name, text in prompts.items()},
    }


def _check_free(files: Mapping[Path, str]) -> None:
    """Before anything is written. Raises UsageFault."""
    there = [str(path) for path in files if os.path.lexists(path)]
    if there:
        are = "is" if len(there) == 1 else "are"
        raise UsageFault(f"{', '.join(there)} {are} there already, so nothing was written. {_HOW}")


def _write(path: Path, text: str, *, force: bool) -> None:
    with path.open("w" if force else "x", encoding="utf-8") as file:
        file.write(text)
