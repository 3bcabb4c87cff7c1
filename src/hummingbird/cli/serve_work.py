"""`hummingbird serve`: the service until somebody ends it, and what it logs."""

import asyncio
import logging
import os
import sys
from pathlib import Path

from hummingbird.assembly.contexts import check_cluster
from hummingbird.assembly.sandboxes import Chosen, check_chosen, wanted_sandbox
from hummingbird.assembly.serving import Serving
from hummingbird.cli.lines import OneLine
from hummingbird.config.configuration import Configuration
from hummingbird.config.load import find
from hummingbird.config.needed import writing
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE
from hummingbird.config.watch import Watch
from hummingbird.domain.limits import SERVE_GRACE_S
from hummingbird.domain.text import shortened

__all__ = ["Chosen", "run"]

_log = logging.getLogger("hummingbird")
_PURPOSES_CHARS = 200


def run(config: str | None, host: str, port: int, chosen: Chosen, *, grace: float | None, verbose: bool) -> int:
    """Raises OperatorError for what it cannot begin with."""
    log_to_stderr(verbose=verbose)
    watch = Watch(find(config, os.environ, Path.cwd()), os.environ)
    check_chosen(watch.current.settings, chosen)
    check_cluster(wanted_sandbox(watch.current.settings, chosen), os.environ)
    asyncio.run(_serve(watch, host, port, chosen, SERVE_GRACE_S if grace is None else grace))
    return 0


async def _serve(watch: Watch, host: str, port: int, chosen: Chosen, grace_s: float) -> None:
    serving = Serving(watch, os.environ, host=host, port=port, chosen=chosen, grace_s=grace_s)
    where = f"http://{f'[{host}]' if ':' in host else host}:{serving.port}/webhooks/gitlab"
    names = ", ".join(watch.current.workflows) or "none"
    _log.info("Webhooks are received at %s. Configuration: %s; workflows: %s.", where, watch.current.name, names)
    _warn_of_missing_token(watch.current)
    await serving.run()
    _log.info("Ended: everything is done or parked.")


def _warn_of_missing_token(configuration: Configuration) -> None:
    """Or nobody would know before the first event."""
    purposes = [need.purpose for need in writing(configuration) if not need.used(os.environ)]
    if purposes:
        told = shortened(", ".join(purposes), _PURPOSES_CHARS)
        _log.warning(
            "%s is not set, and it %s: set it, or events from there come to nothing.", ORCHESTRATOR_VARIABLE, told
        )


def log_to_stderr(*, verbose: bool) -> None:
    """One line for everything; others' libraries only where something is wrong."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    root = logging.getLogger()
    root.handlers = [lines]
    root.setLevel(logging.WARNING)
    _log.setLevel(logging.DEBUG if verbose else logging.INFO)
