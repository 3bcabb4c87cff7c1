"""Where commands run, as `run` and `serve` let one choose. Loads nothing but click."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

BACKENDS = ("bubblewrap", "podman", "k8s", "k8spool")


def placed(command: Callable[..., Any]) -> Callable[..., Any]:
    """--sandbox, --context and --namespace."""
    for option in (
        click.option("--namespace", default="", metavar="NAME", help="Kubernetes namespace of the sandboxes."),
        click.option("--context", default="", metavar="NAME", help="Context of your kubeconfig; means k8s."),
        click.option(
            "--sandbox",
            type=click.Choice(BACKENDS),
            help="Where commands run (default: as settings.sandbox.backend says, else bubblewrap).",
        ),
    ):
        command = option(command)
    return command


def agreed(sandbox: str | None, context: str, namespace: str) -> None:
    """Raises click.UsageError for what does not go together, and SandboxUnavailable for a context without a namespace:
    neither --namespace nor the kubeconfig says one (G6)."""
    if context and sandbox not in (None, "k8s", "k8spool"):
        raise click.UsageError(f"--context is for Kubernetes, and --sandbox {sandbox} is not. Leave one of them out.")
    if namespace and sandbox not in (None, "k8s", "k8spool"):
        raise click.UsageError(f"--namespace is for Kubernetes, and --sandbox {sandbox} is not. Leave one of them out.")
    if context and not namespace:
        import_module("hummingbird.assembly.contexts").check_context(context, os.environ)
