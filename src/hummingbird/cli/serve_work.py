"""`hummingbird serve`: the service until somebody ends it, and what it logs."""

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Any

from hummingbird import __version__
from hummingbird.assembly.contexts import check_cluster
from hummingbird.assembly.sandboxes import Chosen, check_chosen, wanted_sandbox
from hummingbird.assembly.secrets import secrets_of, tool_secrets
from hummingbird.assembly.serving import Serving
from hummingbird.assembly.telemetry import telemetry_of
from hummingbird.cli.lines import JsonLine, Masking, OneLine
from hummingbird.config.configuration import Configuration
from hummingbird.config.load import find
from hummingbird.config.needed import writing
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE
from hummingbird.config.watch import Watch
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.limits import SERVE_GRACE_S
from hummingbird.domain.text import shortened

__all__ = ["Chosen", "run"]

_log = logging.getLogger("hummingbird")
_PURPOSES_CHARS = 200


def run(
    config: str | None,
    host: str,
    port: int,
    chosen: Chosen,
    *,
    grace: float | None,
    verbose: bool,
    log_format: str = "text",
) -> int:
    """Raises OperatorError for what it cannot begin with."""
    masking = log_to_stderr(verbose=verbose, log_format=log_format)
    watch = Watch(find(config, os.environ, Path.cwd()), os.environ)
    masking.configuration = lambda: watch.current
    check_chosen(watch.current.settings, chosen)
    check_cluster(wanted_sandbox(watch.current.settings, chosen), os.environ)
    asyncio.run(_serve(watch, host, port, chosen, SERVE_GRACE_S if grace is None else grace))
    return 0


async def _serve(watch: Watch, host: str, port: int, chosen: Chosen, grace_s: float) -> None:
    secrets = secrets_of(os.environ, tool_secrets(watch.current, os.environ))
    telemetry = telemetry_of(os.environ, __version__, secrets, ca_bundle=watch.current.settings.ca_bundle)
    given: dict[str, Any] = {"host": host, "port": port, "chosen": chosen, "grace_s": grace_s}
    given |= {"watchers": telemetry.watchers, "metrics": telemetry.metrics}
    try:
        await _served(watch, host, Serving(watch, os.environ, **given))
    except HummingbirdError:
        raise
    except Exception:
        _log.exception("Ended because of a bug.")
        raise
    finally:
        await telemetry.close()


async def _served(watch: Watch, host: str, serving: Serving) -> None:
    where = f"http://{f'[{host}]' if ':' in host else host}:{serving.port}/webhooks/gitlab"
    names = ", ".join(watch.current.workflows) or "none"
    _log.info("Webhooks are received at %s. Configuration: %s; workflows: %s.", where, watch.current.name, names)
    _log.info("The dashboard is at %s.", where.removesuffix("webhooks/gitlab"))
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


def log_to_stderr(*, verbose: bool, log_format: str = "text") -> Masking:
    """One line for everything; others' libraries only where something is wrong. What is masked there, the caller says
    more about once it knows."""
    lines, masking = logging.StreamHandler(sys.stderr), Masking()
    sentence = OneLine("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z", masking)
    lines.setFormatter(JsonLine(masking) if log_format == "json" else sentence)
    root = logging.getLogger()
    root.handlers = [lines]
    root.setLevel(logging.WARNING)
    _log.setLevel(logging.DEBUG if verbose else logging.INFO)
    return masking
