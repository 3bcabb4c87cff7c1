"""`hummingbird acp`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module

import click

from hummingbird.cli.options import config_file
from hummingbird.cli.placing import agreed, placed


@click.command()
@config_file
@click.option("--model", default="", metavar="NAME", help="Model to begin with, whatever the configuration says.")
@click.option("--plan", is_flag=True, help="Look and plan, change nothing, whatever mode the editor chooses.")
@click.option("--project", metavar="PATH", help="The GitLab project to talk about, like group/project.")
@placed
@click.option("--verbose", "-v", is_flag=True, help="Log more to standard error, tracebacks too.")
def acp(
    *,
    config: str | None,
    model: str,
    plan: bool,
    project: str | None,
    sandbox: str | None,
    context: str,
    namespace: str,
    verbose: bool,
) -> None:
    """Be the agent of an editor, by the Agent Client Protocol.

    Nobody types this: the editor starts it, speaks with it over standard input and output, and ends it. Files are read
    and edited in the folder that the editor has open. What changes something asks first, in the editor.

    \b
    In Zed, put this into settings.json (zed: open settings file); in the IDEs of
    JetBrains into ~/.jetbrains/acp.json:
      {
        "agent_servers": {
          "Hummingbird": {
            "type": "custom",
            "command": "hummingbird",
            "args": ["acp", "--model", "anthropic:claude-sonnet-5"],
            "env": {"ANTHROPIC_API_KEY": "…"}
          }
        }
      }

    Where the editor does not find the command, write its whole path, which `which hummingbird` tells. Keys of models
    and tokens come from the environment that the editor gives. Logs go to standard error, which the editor shows in
    its own log.

    \b
    Sessions are the same everywhere. To go on in a terminal with one of an editor:
      hummingbird sessions list
      hummingbird chat --resume ID
    """
    agreed(sandbox, context, namespace)
    if project is not None and not project.strip():
        raise click.UsageError("--project is empty: say which one, or leave it out.")
    work = import_module("hummingbird.cli.acp_work")
    chosen = work.Chosen(sandbox or "", context, namespace)
    sys.exit(work.acp(config, chosen, model=model, plan=plan, project=project or "", verbose=verbose))
