"""`hummingbird serve`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module

import click

from hummingbird.cli.options import config_file
from hummingbird.cli.placing import agreed, placed


@click.command()
@config_file
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that webhooks are received on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@placed
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="S",
    help="Seconds that runs have to end after SIGTERM before they are parked (default: 840).",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="A sentence a line, or an object with the ids of session and order.",
)
@click.option("--verbose", "-v", is_flag=True, help="Log every decision, and tracebacks.")
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
    """Receive GitLab's webhooks and answer them with notes.

    Point a webhook of your project to http://HOST:PORT/webhooks/gitlab, with pipeline, merge request, comment and
    confidential comment events. Its secret token is HUMMINGBIRD_WEBHOOK_SECRET, its signing token
    HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN; without either, only this machine may send any. ORCHESTRATOR_GITLAB_TOKEN writes
    the notes. With settings.sqs_queue_url, events come from that queue too.

    The configuration is looked at every few seconds; a broken one is logged and the old one stays. SIGTERM or Ctrl-C
    ends it gently: nothing more is taken, what runs is finished or parked. A second one parks at once.

    \b
    Examples:
      hummingbird serve
      hummingbird serve --config /etc/hummingbird.yaml --host 0.0.0.0 --sandbox podman
    """
    agreed(sandbox, context, namespace)
    work = import_module("hummingbird.cli.serve_work")
    place = work.Chosen(sandbox or "", context, namespace)
    sys.exit(work.run(config, host, port, place, grace=grace, verbose=verbose, log_format=log_format))
