"""`hummingbird run`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module

import click

from hummingbird.cli.options import config_file
from hummingbird.cli.placing import agreed, placed


@click.command()
@config_file
@click.option("--workflow", metavar="NAME", help="The workflow to run; with --project.")
@click.option("--project", metavar="PATH", help="The project's path, like group/project; with --workflow.")
@click.option(
    "--event", metavar="JSON", help='What to look at: {"iid": 7}, also sha, pipeline_id, target_branch, message.'
)
@click.option("--event-file", metavar="FILE", help="A webhook's body, which tells workflow and project; - is stdin.")
@click.option("--execute", is_flag=True, help="Post the result to GitLab and keep the session in the configured store.")
@click.option("--save-session", metavar="FOLDER", help="Keep the session in this folder.")
@click.option(
    "--resume-session",
    metavar="FOLDER|ID",
    help="Go on with a session that was kept, in a folder or in the configured store; with --message.",
)
@click.option("--message", metavar="TEXT", help="What to say to it; with --resume-session.")
@placed
@click.option("--model", default="", metavar="NAME", help="Model of this run, whatever the configuration says.")
@click.option("--verbose", "-v", is_flag=True, help="Show decisions, tool results and tracebacks too.")
def run(
    *,
    config: str | None,
    workflow: str | None,
    project: str | None,
    event: str | None,
    event_file: str | None,
    execute: bool,
    save_session: str | None,
    resume_session: str | None,
    message: str | None,
    sandbox: str | None,
    context: str,
    namespace: str,
    model: str,
    verbose: bool,
) -> None:
    """Run a workflow once, and print what it found.

    Name workflow, project and merge request yourself, or give a webhook's body with --event-file. What happened
    before, and the status of a pipeline, do not matter here. Nothing is written to GitLab without --execute, and no
    token that writes is needed.

    \b
    Examples:
      hummingbird run --workflow analyze-failures --project acme/widgets --event '{"iid": 7}'
      hummingbird run --event-file event.json --save-session /tmp/look
      hummingbird run --workflow analyze-failures --project acme/widgets \\
          --resume-session /tmp/look --message "Is it the test's fault?"

    Exit code 1 means: there is no useful answer.
    """
    agreed(sandbox, context, namespace)
    _agreed(
        workflow=workflow,
        project=project,
        event=event,
        event_file=event_file,
        resume=resume_session,
        message=message,
    )
    work = import_module("hummingbird.cli.run_work")
    wish = work.Wish(
        workflow=workflow or "",
        project=project or "",
        event=event,
        event_file=event_file,
        execute=execute,
        save=save_session,
        resume=resume_session,
        message=message or "",
        model=model,
    )
    sys.exit(work.run(config, wish, work.Chosen(sandbox or "", context, namespace), verbose=verbose))


def _agreed(
    *,
    workflow: str | None,
    project: str | None,
    event: str | None,
    event_file: str | None,
    resume: str | None,
    message: str | None,
) -> None:
    """What goes together, and what does not (G6). An empty text, of a variable that is not set, says nothing."""
    for option, said in (("--workflow", workflow), ("--project", project), ("--event-file", event_file)):
        if said is not None and not said.strip():
            raise click.UsageError(f"{option} is empty: say which one, or leave it out.")
    if (workflow is None) != (project is None):
        raise click.UsageError("--workflow and --project go together: give both, or an --event-file.")
    if event is not None and event_file is not None:
        raise click.UsageError("--event and --event-file exclude each other: give one of them.")
    if (resume is None) != (message is None):
        raise click.UsageError("--resume-session and --message go together: give both, or neither.")
    if event_file is None and workflow is None:
        raise click.UsageError("Say what to run: --workflow and --project with --event, or --event-file.")
    if workflow is not None and event is None and event_file is None and resume is None:
        raise click.UsageError("Say what to look at: --event '{\"iid\": 7}', or --event-file.")
