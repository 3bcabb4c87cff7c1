"""What a person sees when a command fails: one sentence, and the traceback only when asked for (G6)."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence

import click

from hummingbird.assembly.secrets import secrets_of
from hummingbird.domain.errors import HummingbirdError, OperatorError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def explain(error: Exception, arguments: Sequence[str]) -> int:
    """Prints to standard error and returns the exit code: 2 when the operator must change something, else 1."""
    if {"-v", "--verbose"} & set(arguments):
        _tell("".join(traceback.format_exception(error)))
    if isinstance(error, HummingbirdError):
        _tell(f"hummingbird: {error}")
    elif refused := _refused(error):
        _tell(f"hummingbird: {refused}")
    else:
        _tell(f"hummingbird: unexpected {type(error).__name__}: {error} (run again with -v for details)")
    return 2 if isinstance(error, OperatorError) else 1


def _tell(text: str) -> None:
    """Others wrote parts of it, who may have quoted what they were asked with (I1, I2)."""
    click.echo(secrets_of(os.environ).mask(text), err=True)


def _refused(error: Exception) -> str:
    """Why standard output took nothing; empty if that is not what happened. Readers that go away are click's."""
    if not isinstance(error, OSError) or error.errno not in _FULL or error.filename is not None:
        return ""
    _forget_output()
    return f"The output cannot be written: {error.strerror}. Make room, or write it elsewhere."


def _forget_output() -> None:
    """Or the interpreter tries to write the rest once more when it ends, and complains."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
