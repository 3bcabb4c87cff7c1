"""Text of sessions on standard output. A terminal is not told what to do by what a model quotes."""

import sys

import click

from hummingbird.evidence.visible import visible


def printed(text: str) -> None:
    """Where a letter cannot be shown, its number is."""
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(map(visible, text.split("\n")))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(f"{text}\n".encode(encoding, "backslashreplace"), nl=False)
