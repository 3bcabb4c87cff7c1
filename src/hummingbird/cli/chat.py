"""`hummingbird chat`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import os
import sys
from importlib import import_module

import click

from hummingbird.chat.wish import ChatWish
from hummingbird.cli.options import config_file
from hummingbird.cli.placing import agreed, placed


@click.command()
@config_file
@click.option("--query", "-q", metavar="TEXT", help="Answer this and end; - is standard input.")
@click.option("--json", "as_json", is_flag=True, help="One event per line on standard output, the result last.")
@click.option("--resume", metavar="ID", help="Go on with the session whose id begins so.")
@click.option("--continue", "newest", is_flag=True, help="Go on with the last session.")
@click.option("--model", default="", metavar="NAME", help="Model to begin with, whatever the configuration says.")
@click.option("--plan", is_flag=True, help="Look and plan, change nothing: what writes or sends is refused.")
@click.option("--project", metavar="PATH", help="The GitLab project to talk about, like group/project.")
@click.option("--workflow", metavar="NAME", help="Take prompt and tools of this workflow; with --project.")
@click.option("--toolsets", metavar="A,B", help="Only these toolsets, like workspace,terminal,todo.")
@placed
@click.option("--workspace", default="", metavar="FOLDER", help="Where files are read and edited (default: here).")
@click.option("--prompt-size", is_flag=True, help="Show what the prompt and the tools weigh, and end.")
@click.option("--no-color", is_flag=True, help="No colours and no escape sequences in answers, as NO_COLOR says too.")
@click.option("--verbose", "-v", is_flag=True, help="Show tool results, reasoning and tracebacks too.")
def chat(
    *,
    config: str | None,
    query: str | None,
    as_json: bool,
    resume: str | None,
    newest: bool,
    model: str,
    plan: bool,
    project: str | None,
    workflow: str | None,
    toolsets: str | None,
    sandbox: str | None,
    context: str,
    namespace: str,
    workspace: str,
    prompt_size: bool,
    no_color: bool,
    verbose: bool,
) -> None:
    """Talk with the agent, in a terminal or through a pipe.

    In a terminal the prompt is always there: what you send during a run waits its turn, /steer reaches the run itself,
    Ctrl-C interrupts it. /help lists the commands. @path lets a file go along with your message. Tools that change
    something ask first; rules in chat.permissions answer for you.

    \b
    Examples:
      hummingbird chat
      hummingbird chat --continue
      hummingbird chat --plan --project acme/widgets
      hummingbird chat -q "Why does @build.log end early?"
      git diff | hummingbird chat -q - --toolsets ""
      hummingbird chat -q "List flaky tests" --json | jq -r 'select(.kind == "result").final_response'
      printf 'Read @notes.md\\nNow in one sentence\\n' | hummingbird chat

    Exit code 1 means: there is no useful answer; 130: it was interrupted.
    """
    agreed(sandbox, context, namespace)
    _agreed(query=query, resume=resume, newest=newest, project=project, workflow=workflow)
    wish = ChatWish(
        query=query,
        as_json=as_json,
        resume=resume or "",
        newest=newest,
        model=model,
        plan=plan,
        project=project or "",
        workflow=workflow or "",
        toolsets=None if toolsets is None else tuple(filter(None, (one.strip() for one in toolsets.split(",")))),
        workspace=workspace,
        prompt_size=prompt_size,
        colour=not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
    )
    work = import_module("hummingbird.cli.chat_work")
    sys.exit(work.chat(config, wish, work.Chosen(sandbox or "", context, namespace), verbose=verbose))


def _agreed(*, query: str | None, resume: str | None, newest: bool, project: str | None, workflow: str | None) -> None:
    """What goes together, and what does not (G6). An empty text, of a variable that is not set, says nothing."""
    said = (("--query", query), ("--resume", resume), ("--project", project), ("--workflow", workflow))
    for option, value in said:
        if value is not None and not value.strip():
            raise click.UsageError(f"{option} is empty: say which one, or leave it out.")
    if resume is not None and newest:
        raise click.UsageError("--resume and --continue exclude each other: give one of them.")
    if workflow is not None and project is None:
        raise click.UsageError("--workflow needs --project: say which project it is about.")
