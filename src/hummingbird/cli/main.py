"""The `hummingbird` command: a group that imports a subcommand only when somebody calls it."""

import os
import sys
from importlib import import_module

import click

from hummingbird import __version__

# What `hummingbird --help` shows: group, command name: (module, function, first line of the command's own help).
COMMAND_GROUPS: dict[str, dict[str, tuple[str, str, str]]] = {
    "Try it": {
        "demo": ("demo", "demo", "Show the whole service on this machine, from webhook to note."),
        "explain": ("explain", "explain", "Show what failed in a log, where, and the likely cause."),
        "lab": ("lab", "lab", "Serve a test case with stand-ins for GitLab and its sources."),
    },
    "Set it up": {
        "init": ("init", "init", "Write a starter configuration and list the next steps."),
        "config": ("config", "config", "Check, describe and explain the configuration."),
        "doctor": ("doctor", "doctor", "Test every part of the setup and say how to fix what fails."),
        "sandbox": ("sandbox", "sandbox", "Build, check and clean up the sandboxes of commands."),
    },
    "Run it": {
        "serve": ("serve", "serve", "Receive GitLab webhooks and answer them with notes."),
        "run": ("run", "run", "Run a workflow once and print the result."),
        "eval": ("eval", "evaluate", "Run workflows on cases with known answers and score them."),
    },
    "Talk to it": {
        "chat": ("chat", "chat", "Chat with the agent, in a terminal or through a pipe."),
        "mcp": ("mcp", "mcp", "Answer other agents: why did this pipeline fail? (MCP server)"),
        "acp": ("acp", "acp", "Serve an editor as its agent (Agent Client Protocol)."),
    },
    "Look back": {
        "sessions": ("sessions", "sessions", "List, search, show, replay, export and remove sessions."),
        "queue": ("queue", "queue", "List, retry or delete messages that failed too often."),
    },
}
COMMANDS = {name: row for group in COMMAND_GROUPS.values() for name, row in group.items()}


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called, so that `--help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, function, _ = COMMANDS[cmd_name]
        command = getattr(import_module(f"hummingbird.cli.{module}"), function)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands from the table, by group: click's own method would import all of them."""
        width = max(map(len, COMMANDS))
        for title, group in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, _, summary) in group.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 no useful answer, 2 bad usage, 3 refused calls (chat), 130 interrupted.",
)
@click.version_option(__version__, prog_name="hummingbird")
def commands() -> None:
    """Hummingbird finds why a GitLab pipeline failed and says so with evidence."""


def _wants_plain_output() -> bool:
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def _flush_output() -> None:
    """Flush now: a failed flush at interpreter exit would print a traceback."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _usage_error_text(error: click.ClickException) -> str:
    """Return a wrong option or argument in the form that all errors have: one sentence, and below it what is right."""
    said = error.format_message().strip()
    ended = said if said.endswith((".", "!", "?")) else f"{said}."
    context = getattr(error, "ctx", None)
    if context is None:
        return f"hummingbird: {ended}"
    return f"hummingbird: {ended}\n{context.get_usage()}\n`{context.command_path} --help` says more."


def main() -> None:
    """Run the command line; print an error as one sentence that says what to do, and its traceback only with -v."""
    try:
        try:
            commands(standalone_mode=False, color=False if _wants_plain_output() else None)
        finally:
            _flush_output()
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        click.echo(_usage_error_text(error), err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the outermost border: nobody is above us to tell the person
        from hummingbird.cli.error_output import report_error

        sys.exit(report_error(error, sys.argv))
