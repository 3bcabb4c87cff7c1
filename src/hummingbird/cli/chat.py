"""The options of `hummingbird chat`. app.chat does the work and is imported only when the command runs."""

import os
import sys

import click

from hummingbird.chat.request import PICK_SESSION, ChatRequest
from hummingbird.cli.options import (
    check_sandbox_options,
    complete_model,
    complete_session,
    complete_workflow,
    config_option,
    sandbox_options,
)


@click.command()
@config_option
@click.argument("message", required=False)
@click.option(
    "--query",
    "-q",
    "-p",
    "--print",
    metavar="[TEXT]",
    is_flag=False,
    flag_value="-",
    help="Answer this question and exit. Piped input goes along with it, or is the question if there is no TEXT.",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="The answer alone, one JSON document, or one JSON event per line, the result last.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --output-format stream-json.")
@click.option(
    "--resume",
    "-r",
    metavar="[ID]",
    shell_complete=complete_session,
    is_flag=False,
    flag_value=PICK_SESSION,
    help="Continue the session whose id starts with ID; without one, choose it from a list.",
)
@click.option("--continue", "-c", "newest", is_flag=True, help="Continue the last session of this folder.")
@click.option(
    "--model",
    "-m",
    default="",
    metavar="NAME",
    shell_complete=complete_model,
    help="Model to start with; overrides the configuration.",
)
@click.option("--plan", is_flag=True, help="Only read and plan: refuse every tool that writes or sends.")
@click.option("--allow-edits", is_flag=True, help="Edit files of the workspace without asking.")
@click.option("--allow", multiple=True, metavar="RULE", help="Allow calls, like 'terminal(git status *)'; repeatable.")
@click.option("--deny", multiple=True, metavar="RULE", help="Refuse calls, like 'file_read(secrets/*)'; repeatable.")
@click.option("--project", metavar="PATH", help="GitLab project to talk about, like group/project.")
@click.option(
    "--workflow",
    metavar="NAME",
    shell_complete=complete_workflow,
    help="Use the prompt and tools of this workflow; needs --project.",
)
@click.option("--toolsets", metavar="A,B", help="Use only these toolsets, like workspace,terminal,todo.")
@click.option(
    "--effort", metavar="LEVEL", help="How much the model thinks: none, minimal, low, medium, high, xhigh or max."
)
@click.option("--max-usd", type=click.FloatRange(0), metavar="USD", help="Maximum cost of the answer to one message.")
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Maximum number of model answers to a message.")
@click.option("--append-system-prompt", default="", metavar="TEXT", help="Add this text to the system prompt.")
@sandbox_options
@click.option("--workspace", default="", metavar="FOLDER", help="Folder to read and edit files in (default: this one).")
@click.option("--prompt-size", is_flag=True, help="Show how large the prompt and the tools are, and exit.")
@click.option("--no-color", is_flag=True, help="Print no colours and no escape sequences; NO_COLOR does the same.")
@click.option("--verbose", "-v", is_flag=True, help="Also show tool results, reasoning and tracebacks.")
def chat(
    *,
    config: str | None,
    message: str | None,
    output_format: str,
    query: str | None,
    as_json: bool,
    resume: str | None,
    newest: bool,
    model: str,
    plan: bool,
    allow_edits: bool,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    project: str | None,
    workflow: str | None,
    toolsets: str | None,
    effort: str | None,
    max_usd: float | None,
    max_turns: int | None,
    append_system_prompt: str,
    sandbox: str | None,
    context: str,
    namespace: str,
    workspace: str,
    prompt_size: bool,
    no_color: bool,
    verbose: bool,
) -> None:
    """Chat with the agent, in a terminal or through a pipe.

    In a terminal you can type at any time: a message sent during a run waits until the run ends, /steer sends one into
    the run, and Ctrl-C interrupts the run. /help lists the commands. Write @path to attach a file to your message.
    Tools that change something ask first; rules in chat.permissions can answer for you.

    \b
    Examples:
      hummingbird chat
      hummingbird chat "Why does test_prices.py fail?"
      hummingbird chat --continue
      hummingbird chat --plan --project acme/widgets
      hummingbird chat -q "Why does @build.log end early?"
      git diff | hummingbird chat -q "Review this" --toolsets ""
      hummingbird chat -q "List flaky tests" --output-format json | jq -r .final_response
      hummingbird chat -q "Mend the tests" --allow-edits --allow 'terminal(pytest *)'
      printf 'Read @notes.md\\nNow in one sentence\\n' | hummingbird chat

    Exit code 1: no useful answer; 3: an answer, but calls were refused because nobody could be asked; 130: interrupted.
    Standard error names the option that would allow each of those calls.
    """
    check_sandbox_options(sandbox, context, namespace)
    _check_options(query=query, resume=resume, newest=newest, project=project, workflow=workflow)
    if message is not None and query is not None:
        raise click.UsageError("Give the question once: as an argument, or with -q.")
    if as_json and output_format == "json":
        raise click.UsageError("--json prints a stream of events; leave it out with --output-format json.")
    if plan and allow_edits:
        raise click.UsageError("--plan and --allow-edits exclude each other: give one of them.")
    request = ChatRequest(
        query=query,
        message=message or "",
        as_json=as_json or output_format == "stream-json",
        only_result=output_format == "json",
        resume=resume or "",
        newest=newest,
        model=model,
        plan=plan,
        accept_edits=allow_edits,
        allow=allow,
        deny=deny,
        project=project or "",
        workflow=workflow or "",
        toolsets=None if toolsets is None else tuple(filter(None, (one.strip() for one in toolsets.split(",")))),
        effort=effort,
        max_usd=max_usd,
        max_turns=max_turns,
        instructions=append_system_prompt,
        workspace=workspace,
        prompt_size=prompt_size,
        colour=not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
    )
    from hummingbird.app.chat_command import chat_command
    from hummingbird.app.sandboxes import SandboxChoice

    sys.exit(chat_command(config, request, SandboxChoice(sandbox or "", context, namespace), verbose=verbose))


def _check_options(
    *, query: str | None, resume: str | None, newest: bool, project: str | None, workflow: str | None
) -> None:
    """Raise click.UsageError for options that contradict each other or are empty.

    An empty value usually comes from a shell variable that is not set.
    """
    said = (("--query", query), ("--resume", resume), ("--project", project), ("--workflow", workflow))
    for option, value in said:
        if value is not None and not value.strip():
            raise click.UsageError(f"{option} is empty: say which one, or leave it out.")
    if resume == PICK_SESSION and (query is not None or not sys.stdin.isatty()):
        raise click.UsageError("--resume without an id needs a terminal to choose in; name an id.")
    if resume is not None and newest:
        raise click.UsageError("--resume and --continue exclude each other: give one of them.")
    if workflow is not None and project is None:
        raise click.UsageError("--workflow needs --project: say which project it is about.")
