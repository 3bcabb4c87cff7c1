"""`hummingbird lab`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module
from typing import Any

import click


@click.command()
@click.argument("case", required=False, metavar="[CASE]")
@click.option("--port", type=click.IntRange(0, 65_531), default=0, help="The first of the ports (default: free ones).")
@click.option(
    "--event-file", type=click.Path(dir_okay=False), help="Write the webhook's body there, as GitLab would send it."
)
@click.option("--hook", metavar="URL", help="Send the case's event there, and every later one, as GitLab would.")
@click.option("--hook-token", default="", metavar="TEXT", help="For --hook: the secret in X-Gitlab-Token.")
@click.option(
    "--signing-token", default="", metavar="whsec_…", help="For --hook: the token that webhooks are signed with."
)
@click.option("--json", "as_json", is_flag=True, help="Say where everything is in one line of JSON.")
@click.option("--verbose", "-v", is_flag=True, help="Show every request, and tracebacks.")
def lab(case: str | None, **chosen: Any) -> None:
    """Serve a case: a GitLab, a Konflux and a Testing Farm of one's own, on this machine.

    CASE is the name of a built-in one, or a folder with a case.json; without it the cases are listed. The stand-ins
    behave as the real ones do, their awkward sides included, so that python-gitlab, kubectl, curl and Hummingbird can
    be tried on them. They answer on 127.0.0.1 until you press Ctrl-C, and forget what was written to them.

    \b
      hummingbird lab                              which cases there are
      hummingbird lab compiler-error               serve one, and say how to use it
      hummingbird lab hostile --hook http://127.0.0.1:8080/webhooks/gitlab
    """
    work = import_module("hummingbird.cli.lab_work")
    if case is None:
        sys.exit(work.listed())
    sys.exit(work.serve(work.Chosen(case=case, **chosen)))
