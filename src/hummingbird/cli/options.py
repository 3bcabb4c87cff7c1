"""Options that several commands share. Imports only click, so that `--help` is fast."""

import os
from collections.abc import Callable
from typing import Any

import click

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
            help="Sandbox that commands run in (default: settings.sandbox.backend).",
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
