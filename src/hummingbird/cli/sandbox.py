"""The commands of `hummingbird sandbox`. They print progress to standard error and the result to standard output."""

import asyncio
import os
import sys
import time
from contextlib import aclosing

import click

from hummingbird.app.sandboxes import build_sandbox_image as built
from hummingbird.app.sandboxes import check_sandbox as checks
from hummingbird.app.sandboxes import remove_leftovers as reaped
from hummingbird.cli.options import BACKENDS
from hummingbird.core.text import shorten_line

_verbose_option = click.option("--verbose", "-v", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
_image_option = click.option(
    "--image",
    default="",
    metavar="NAME",
    help="Image to use instead of localhost/hummingbird-sandbox:latest.",
)


@click.group()
def sandbox() -> None:
    """Build, check and clean up the sandboxes of commands.

    A sandbox has no network and no credentials, and cannot write to this machine's files. bubblewrap needs only Linux;
    podman needs an image: `hummingbird sandbox build`.
    """


@sandbox.command()
@_image_option
@click.option(
    "--from-packages", is_flag=True, help="Use no registry: build from this Debian or Ubuntu system's packages."
)
@_verbose_option
def build(image: str, from_packages: bool) -> None:
    """Build the image that podman sandboxes run.

    Podman builds it from a Debian base image of a container registry. If no registry can be reached, build uses the
    packages of this system (with mmdebstrap or debootstrap) and its own package sources. It takes about a minute.

    You can use your own image if it has python3 (3.8 or newer, with ctypes), sh and tar: name it in the settings.
    """
    sys.exit(build_image(image, from_packages=from_packages))


@sandbox.command()
@click.argument("backend", type=click.Choice(BACKENDS), default="bubblewrap")
@_image_option
@click.option("--context", default="", metavar="NAME", help="For k8s and k8spool: kubeconfig context.")
@click.option("--namespace", default="", metavar="NAME", help="For k8s and k8spool: namespace of the pods.")
@_verbose_option
def check(backend: str, image: str, context: str, namespace: str) -> None:
    """Start a sandbox and check that it works and isolates.

    Check runs a command in it, copies a file in and out, and verifies that it has no network and no privileges.
    The default BACKEND is bubblewrap. Exit code 1: do not use this sandbox; the last line says why.
    """
    sys.exit(run_check(backend, image=image, context=context, namespace=namespace))


@sandbox.command()
@_verbose_option
def gc() -> None:
    """Remove podman containers that killed processes left behind.

    Gc removes only containers that Hummingbird created and whose process is dead. Each start of a podman sandbox does
    the same.
    """
    sys.exit(remove_leftover_containers())


_LINE_CHARS = 160


def build_image(image: str, *, from_packages: bool) -> int:
    began = time.monotonic()
    name = asyncio.run(built(image, os.environ, _print_progress, from_packages=from_packages))
    click.echo(f"Built {name} in {time.monotonic() - began:.0f} s. Test it: hummingbird sandbox check podman")
    return 0


def run_check(backend: str, **wanted: str) -> int:
    fault = asyncio.run(_print_checks(backend, **wanted))
    if fault:
        click.echo(f"hummingbird: The {backend} sandbox does not work here: {fault}", err=True)
        return 1
    click.echo(f"The {backend} sandbox works.")
    return 0


def remove_leftover_containers() -> int:
    names = asyncio.run(reaped(os.environ))
    click.echo(f"Removed {len(names)} leftover sandboxes: {', '.join(names)}." if names else "Nothing was left over.")
    return 0


async def _print_checks(backend: str, **wanted: str) -> str:
    fault = ""
    async with aclosing(checks(backend, os.environ, _print_progress, **wanted)) as lines:
        async for line in lines:
            fault = line.fault
            click.echo(f"{'fails' if fault else 'ok':5}  {line.what:38} {line.seconds:6.2f} s")
    return fault


def _print_progress(line: str) -> None:
    click.secho(shorten_line(line, _LINE_CHARS), err=True, dim=True)
