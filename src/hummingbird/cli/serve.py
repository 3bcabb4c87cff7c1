"""The options of `hummingbird serve`. app.service does the work and is imported only when the command runs."""

import os
import sys

import click

from hummingbird.cli.options import check_sandbox_options, config_option, sandbox_options


@click.command()
@config_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on for webhooks.")
@click.option(
    "--port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0: any free port.",
)
@sandbox_options
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="S",
    help="Seconds that runs may take to finish after SIGTERM before they are parked (default: 840).",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text: one sentence per line; json: one object per line, with the ids of session and order.",
)
@click.option("--verbose", "-v", is_flag=True, help="Log every decision and tracebacks.")
def serve(
    *,
    config: str | None,
    host: str,
    port: int,
    sandbox: str | None,
    context: str,
    namespace: str,
    grace: float | None,
    log_format: str,
    verbose: bool,
) -> None:
    """Receive GitLab webhooks and answer them with notes.

    Add a webhook to your GitLab project with the URL http://HOST:PORT/webhooks/gitlab and the triggers pipeline, merge
    request, comment and confidential comment events. Set HUMMINGBIRD_WEBHOOK_SECRET to its secret token or
    HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN to its signing token; if neither is set, serve accepts webhooks only from this
    machine. Serve writes notes with ORCHESTRATOR_GITLAB_TOKEN. If settings.sqs_queue_url is set, it also takes events
    from that queue.

    Serve rereads the configuration every few seconds; if the file is broken, it logs the error and keeps the old one.
    SIGTERM or Ctrl-C stops it gently: it accepts no more work and finishes or parks what is running. A second signal
    parks all runs at once.

    \b
    Examples:
      hummingbird serve
      hummingbird serve --config /etc/hummingbird.yaml --host 0.0.0.0 --sandbox podman
    """
    check_sandbox_options(sandbox, context, namespace)
    from hummingbird.app.sandboxes import choose_for_service
    from hummingbird.app.service import serve_command

    place = choose_for_service(os.environ, sandbox or "", context, namespace)
    sys.exit(serve_command(config, host, port, place, grace=grace, verbose=verbose, log_format=log_format))
