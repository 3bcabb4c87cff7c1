"""The command `hummingbird init`: writes a starter configuration, unless a file is in the way."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from hummingbird.cli.options import verbose_option
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE
from hummingbird.config.env_requirements import SECRET_VARIABLE
from hummingbird.config.loader import FILE_NAME
from hummingbird.config.template import PROMPTS_FOLDER, load_embedded, render_template
from hummingbird.core.errors import PlatformError, UsageError


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False))
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@verbose_option
def init(folder: str, force: bool) -> None:
    """Write a starter configuration and list the next steps.

    Init writes hummingbird.yaml, with the default and the meaning of every key, and the prompts of its two workflows
    to FOLDER (default: this one). Edit them as you like. Existing files are overwritten only with --force.

    \b
      hummingbird init deploy && cd deploy && hummingbird config check
    """
    sys.exit(write_starting_files(folder, force=force))


NEXT_STEPS = f"""\
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


def write_starting_files(folder: str, *, force: bool) -> int:
    """Write the starter files, print the next steps and return the exit code. Raises UsageError, PlatformError."""
    place = Path(folder)
    files = _starting_files(place)
    if not force:
        _check_no_conflict(files)
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_file(path, text, force=force)
            click.echo(f"Wrote {path}")
    except FileExistsError as error:
        raise UsageError(f"{error.filename} appeared meanwhile. {_CONFLICT_HINT}") from error
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise PlatformError(f"{error.filename or place} cannot be written: {why}. Name another folder.") from error
    click.echo(f"\n{NEXT_STEPS}")
    return 0


_CONFLICT_HINT = "Choose another folder, move away what is there, or replace it with --force."


def _starting_files(place: Path) -> Mapping[Path, str]:
    prompts = load_embedded().prompts
    return {
        place / FILE_NAME: render_template(),
        **{place / PROMPTS_FOLDER / f"{name}.md": text for name, text in prompts.items()},
    }


def _check_no_conflict(files: Mapping[Path, str]) -> None:
    """Check before writing anything that no file exists. Raises UsageError."""
    there = [str(path) for path in files if os.path.lexists(path)]
    if there:
        are = "is" if len(there) == 1 else "are"
        raise UsageError(f"{', '.join(there)} {are} there already, so nothing was written. {_CONFLICT_HINT}")


def _write_file(path: Path, text: str, *, force: bool) -> None:
    with path.open("w" if force else "x", encoding="utf-8") as file:
        file.write(text)
