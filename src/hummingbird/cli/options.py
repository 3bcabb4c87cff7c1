"""Options that several commands share, and what the shell offers behind Tab. Imports little, so that `--help` is fast.

A completion runs on every press of Tab, so it reads only what is on this machine and never shows an error: where
something is broken, it offers nothing, and the command itself will say what is wrong.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from hummingbird.core.errors import HummingbirdError

config_option = click.option(
    "--config",
    "config",
    metavar="FILE",
    help="Configuration file (default: $CONFIG_PATH, then ./hummingbird.yaml, then the embedded defaults).",
)
verbose_option = click.option("--verbose", "-v", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")

BACKENDS = ("bubblewrap", "podman", "k8s", "k8spool")


def sandbox_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --sandbox, --context and --namespace to a command."""
    for option in (
        click.option("--namespace", default="", metavar="NAME", help="Kubernetes namespace for the sandboxes."),
        click.option("--context", default="", metavar="NAME", help="Kubeconfig context; implies --sandbox k8s."),
        click.option(
            "--sandbox",
            type=click.Choice(BACKENDS),
            help="Sandbox that commands run in (default: settings.sandbox.backend, else bubblewrap; for serve, k8spool "
            "in a cluster or with settings.sandbox.namespace).",
        ),
    ):
        command = option(command)
    return command


def check_sandbox_options(sandbox: str | None, context: str, namespace: str) -> None:
    """Check that the sandbox options fit together.

    Raises click.UsageError when they contradict each other, and SandboxUnavailable when there is a context but neither
    --namespace nor the kubeconfig names a namespace.
    """
    if context and sandbox not in (None, "k8s", "k8spool"):
        raise click.UsageError(f"--context is for Kubernetes, and --sandbox {sandbox} is not. Leave one of them out.")
    if namespace and sandbox not in (None, "k8s", "k8spool"):
        raise click.UsageError(f"--namespace is for Kubernetes, and --sandbox {sandbox} is not. Leave one of them out.")
    if context and not namespace:
        from hummingbird.app.sandboxes import check_kube_context

        check_kube_context(context, os.environ)


Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Candidates: TypeAlias = Iterable[tuple[str, str]]  # values with a word about each

_NEWEST_SESSIONS = 50


def _completer(list_candidates: Callable[[click.Context], Candidates]) -> Completer:
    @wraps(list_candidates)
    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            found = list(list_candidates(ctx))
        except (HummingbirdError, OSError, ValueError):
            return []
        return [CompletionItem(value, help=about) for value, about in found if value.startswith(incomplete)]

    return complete


@_completer
def complete_case(ctx: click.Context) -> Candidates:
    """Offer the built-in cases of the lab, but none twice."""
    from hummingbird.lab.case import case_names, find_case

    given = ctx.params.get("cases") or ()
    for name in case_names():
        if name not in given:
            yield name, str(find_case(name).description["title"])


@_completer
def complete_workflow(ctx: click.Context) -> Candidates:
    """Offer the workflows of the configuration."""
    from hummingbird.config.loader import find_config, load_config

    configuration = load_config(find_config(ctx.params.get("config"), os.environ, Path.cwd()), None)
    for name in configuration.workflows:
        yield name, ""


@_completer
def complete_model(ctx: click.Context) -> Candidates:  # noqa: ARG001 - all completions have one form
    """Offer the models that are known by their bare names: bash splits words at the colon of `provider:model`."""
    from hummingbird.models.prices import list_chat_models

    yield "digest", "rules, no model"
    for name in list_chat_models():
        yield name, ""


@_completer
def complete_session(ctx: click.Context) -> Candidates:
    """Offer the newest sessions by id, with their titles."""
    from hummingbird.app.console import SystemClock
    from hummingbird.app.session_catalog import open_session_catalog
    from hummingbird.config.loader import find_config, load_config

    configuration = load_config(find_config(ctx.params.get("config"), os.environ, Path.cwd()), None)
    catalog = open_session_catalog(configuration, os.environ, SystemClock())
    for session in asyncio.run(catalog.list_sessions(_NEWEST_SESSIONS)):
        yield session.session_id, session.title
