"""What a person sees when a command fails: one sentence, and the traceback only when asked for (G6)."""

import traceback
from collections.abc import Sequence

import click

from hummingbird.domain.errors import HummingbirdError, OperatorError


def explain(error: Exception, arguments: Sequence[str]) -> int:
    """Prints to standard error and returns the exit code: 2 when the operator must change something, else 1."""
    if {"-v", "--verbose"} & set(arguments):
        click.echo("".join(traceback.format_exception(error)), err=True)
    if isinstance(error, HummingbirdError):
        click.echo(f"hummingbird: {error}", err=True)
    else:
        click.echo(f"hummingbird: unexpected {type(error).__name__}: {error} (run again with -v for details)", err=True)
    return 2 if isinstance(error, OperatorError) else 1
