"""The options of `hummingbird run`. app.run does the work and is imported only when the command runs."""

import sys

import click

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
@click.option("--workflow", metavar="NAME", shell_complete=complete_workflow, help="Workflow to run; needs --project.")
@click.option("--project", metavar="PATH", help="Path of the project, like group/project; needs --workflow.")
@click.option(
    "--event",
    metavar="JSON",
    help='Merge request to look at: {"iid": 7}; may also hold sha, pipeline_id, target_branch, message.',
)
@click.option(
    "--event-file", metavar="FILE", help="Webhook body that determines workflow and project; - reads standard input."
)
@click.option("--execute", is_flag=True, help="Post the result to GitLab and save the session to the configured store.")
@click.option("--save-session", metavar="FOLDER", help="Save the session to this folder.")
@click.option(
    "--resume-session",
    metavar="FOLDER|ID",
    shell_complete=complete_session,
    help="Continue a saved session, from a folder or from the configured store; needs --message.",
)
@click.option("--message", metavar="TEXT", help="Message to continue with; needs --resume-session.")
@sandbox_options
@click.option(
    "--model",
    default="",
    metavar="NAME",
    shell_complete=complete_model,
    help="Model for this run; overrides the configuration.",
)
@click.option("--verbose", "-v", is_flag=True, help="Also show decisions, tool results and tracebacks.")
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
    """Run a workflow once and print the result.

    Name the workflow, project and merge request yourself, or pass a webhook body with --event-file. The run starts
    whatever the pipeline's status is and whether or not the service handled the event before. Without --execute,
    nothing is written to GitLab and no write token is needed.

    \b
    Examples:
      hummingbird run --workflow analyze-failures --project acme/widgets --event '{"iid": 7}'
      hummingbird run --event-file event.json --save-session /tmp/look
      hummingbird run --workflow analyze-failures --project acme/widgets \\
          --resume-session /tmp/look --message "Is it the test's fault?"

    Exit code 1: no useful answer.
    """
    check_sandbox_options(sandbox, context, namespace)
    _check_options(
        workflow=workflow,
        project=project,
        event=event,
        event_file=event_file,
        resume=resume_session,
        message=message,
    )
    from hummingbird.app.run import run_command
    from hummingbird.app.run_request import RunRequest
    from hummingbird.app.sandboxes import SandboxChoice

    request = RunRequest(
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
    sys.exit(run_command(config, request, SandboxChoice(sandbox or "", context, namespace), verbose=verbose))


def _check_options(
    *,
    workflow: str | None,
    project: str | None,
    event: str | None,
    event_file: str | None,
    resume: str | None,
    message: str | None,
) -> None:
    """Raise click.UsageError for options that contradict each other, are incomplete or are empty.

    An empty value usually comes from a shell variable that is not set.
    """
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
