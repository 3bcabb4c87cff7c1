"""Prints the error of a failed command: one sentence, and the traceback only with -v."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence

import click

from hummingbird.app.environment_secrets import environment_secrets
from hummingbird.core.errors import HummingbirdError, OperatorError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def report_error(error: Exception, arguments: Sequence[str]) -> int:
    """Print the error to standard error and return the exit code: 2 when the operator must change something, else 1."""
    if {"-v", "--verbose"} & set(arguments):
        _print_masked("".join(traceback.format_exception(error)))
    if isinstance(error, HummingbirdError):
        _print_masked(f"hummingbird: {error}")
    elif refused := _output_error(error):
        _print_masked(f"hummingbird: {refused}")
    else:
        _print_masked(f"hummingbird: unexpected {type(error).__name__}: {error} (run again with -v for details)")
    return 2 if isinstance(error, OperatorError) else 1


def _print_masked(text: str) -> None:
    """Print to standard error with secrets masked: a server's error message may quote the token we sent."""
    click.echo(environment_secrets(os.environ).mask(text), err=True)


def _output_error(error: Exception) -> str:
    """Return why standard output could not be written (disk full), or "" for any other error.

    Click itself handles a reader that closes the pipe.
    """
    if not isinstance(error, OSError) or error.errno not in _DISK_FULL or error.filename is not None:
        return ""
    _discard_output()
    return f"The output cannot be written: {error.strerror}. Make room, or write it elsewhere."


def _discard_output() -> None:
    """Send standard output to /dev/null: the interpreter flushes the rest at exit and would print an error again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
