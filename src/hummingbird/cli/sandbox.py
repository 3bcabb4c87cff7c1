"""`hummingbird sandbox`: what can be typed. What then happens is loaded when it does, so that --help is quick."""

import sys
from importlib import import_module
from typing import Any

import click

from hummingbird.cli.placing import BACKENDS

_verbose = click.option("--verbose", "-v", is_flag=True, expose_value=False, help="Show tracebacks too.")
_image = click.option(
    "--image",
    default="",
    metavar="NAME",
    help="The image to use instead of localhost/hummingbird-sandbox:latest.",
)


@click.group()
def sandbox() -> None:
    """Make, try and tidy up the places where commands run.

    A sandbox has no network, no credential and nothing of this machine that could be written. bubblewrap needs only
    Linux; podman needs an image: `hummingbird sandbox build`.
    """


@sandbox.command()
@_image
@click.option("--from-packages", is_flag=True, help="Ask no registry: use this Debian or Ubuntu system's packages.")
@_verbose
def build(image: str, from_packages: bool) -> None:
    """Make the image that podman sandboxes run.

    With podman, from a Debian base image of a container registry. Where no registry can be reached, from the packages
    of this system (with mmdebstrap or debootstrap) through its own package sources. Takes about a minute.

    An image of your own will do if it has python3 (3.8 or newer, with ctypes), sh and tar: name it in the settings.
    """
    sys.exit(_work().build(image, from_packages=from_packages))


@sandbox.command()
@click.argument("backend", type=click.Choice(BACKENDS), default="bubblewrap")
@_image
@click.option("--context", default="", metavar="NAME", help="For k8s and k8spool: the context of your kubeconfig.")
@click.option("--namespace", default="", metavar="NAME", help="For k8s and k8spool: the namespace the pods are in.")
@_verbose
def check(backend: str, image: str, context: str, namespace: str) -> None:
    """Start a sandbox and try what it promises.

    It runs a command, takes a file there and back, and looks whether it really has no network and no rights.
    BACKEND is bubblewrap unless you name another. Exit code 1 means: do not use it, and the last line says why.
    """
    sys.exit(_work().check(backend, image=image, context=context, namespace=namespace))


@sandbox.command()
@_verbose
def gc() -> None:
    """Remove podman containers that killed processes left behind.

    Only containers that Hummingbird made, and only those whose process is dead. Each start of a podman sandbox does
    the same.
    """
    sys.exit(_work().gc())


def _work() -> Any:
    return import_module("hummingbird.cli.sandbox_work")
