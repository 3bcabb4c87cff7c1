"""docs/reference/cli.md, made of what click knows: every command with its usage, its help and its options."""

from collections.abc import Iterator
from inspect import cleandoc

import click

from hummingbird.cli.main import COMMANDS, commands

PROGRAM = "hummingbird"
HEAD = """\
# Commands

Made of the program's own help by `make docs`. `hummingbird serve --help` says the same of one of them in a
terminal. Every command takes `-h` and `--help`; `hummingbird --version` says which version it is.
"""


def page() -> str:
    top = click.Context(commands, info_name=PROGRAM)
    summary = [f"| [`{name}`](#{_anchor(name)}) | {_cell(each.get_short_help_str(200))} |" for name, each in _visible()]
    table = "\n".join(["| command | what it does |", "|---|---|", *summary])
    parts = [part for name, each in _visible() for part in _parts(each, name, top, depth=2)]
    return "\n".join([HEAD, table, "", *parts, str(commands.epilog), ""])


def _visible() -> list[tuple[str, click.Command]]:
    top = click.Context(commands)
    loaded = [(name, commands.get_command(top, name)) for name in sorted(COMMANDS)]
    return [(name, each) for name, each in loaded if each is not None and not each.hidden]


def _parts(command: click.Command, name: str, parent: click.Context, depth: int) -> Iterator[str]:
    """The command, and those below it."""
    context = click.Context(command, info_name=name, parent=parent)
    path = context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield f"{'#' * depth} {path}\n"
    yield f"```text\n{usage}\n```\n"
    yield from _help(command.help or "")
    options = (each for each in command.params if isinstance(each, click.Option))
    if records := [record for each in options if (record := each.get_help_record(context))]:
        rows = [f"| `{_cell(words)}` | {_cell(meaning)} |" for words, meaning in records]
        yield "\n".join(["| option | meaning |", "|---|---|", *rows, ""])
    if isinstance(command, click.Group):
        for each in sorted(command.commands):
            yield from _parts(command.commands[each], each, context, depth + 1)


def _help(text: str) -> Iterator[str]:
    """Paragraphs as they are, each on one line; what must keep its lines (\\b) as a block, its title above it."""
    for paragraph in cleandoc(text).split("\n\n"):
        lines = paragraph.splitlines()
        if lines[0] != "\b":
            yield " ".join(lines).replace("<", "&lt;") + "\n"
            continue
        title = [line for line in lines[1:] if not line.startswith(" ")]
        block = [line.removeprefix("  ") for line in lines[1:] if line.startswith(" ")]
        if title:
            yield " ".join(title) + "\n"
        yield "\n".join(["```text", *block, "```", ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _anchor(name: str) -> str:
    return f"{PROGRAM}-{name}"
