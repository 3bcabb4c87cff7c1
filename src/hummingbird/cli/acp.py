"""The options of `hummingbird acp`. app.editor does the work and is imported only when the command runs."""

import sys

import click

from hummingbird.cli.options import check_sandbox_options, complete_model, config_option, sandbox_options


@click.command()
@config_option
@click.option(
    "--model",
    default="",
    metavar="NAME",
    shell_complete=complete_model,
    help="Model to start with; overrides the configuration.",
)
@click.option("--plan", is_flag=True, help="Only read and plan, change nothing, whatever mode the editor chooses.")
@click.option("--project", metavar="PATH", help="GitLab project to talk about, like group/project.")
@sandbox_options
@click.option("--verbose", "-v", is_flag=True, help="Log more to standard error, including tracebacks.")
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
    """Serve an editor as its agent (Agent Client Protocol).

    You do not run this yourself: the editor starts it, talks to it over standard input and output, and stops it. The
    agent reads and edits files in the folder that is open in the editor. Tools that change something ask for
    permission in the editor first.

    \b
    In Zed, add this to settings.json (zed: open settings file); in JetBrains IDEs,
    add it to ~/.jetbrains/acp.json:
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

    If the editor does not find the command, write its full path (`which hummingbird` prints it). API keys and tokens
    come from the environment that the editor sets. Logs go to standard error; the editor shows them in its own log.

    \b
    Editor and terminal share the same sessions. To continue an editor's session
    in a terminal:
      hummingbird sessions list
      hummingbird chat --resume ID
    """
    check_sandbox_options(sandbox, context, namespace)
    if project is not None and not project.strip():
        raise click.UsageError("--project is empty: say which one, or leave it out.")
    from hummingbird.core.errors import require_extra

    require_extra("acp", "acp", "The editors' protocol")
    from hummingbird.app.editor import acp_command
    from hummingbird.app.sandboxes import SandboxChoice

    chosen = SandboxChoice(sandbox or "", context, namespace)
    sys.exit(acp_command(config, chosen, model=model, plan=plan, project=project or "", verbose=verbose))
