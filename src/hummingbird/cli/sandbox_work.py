"""How the `sandbox` commands look: progress on standard error, the outcome on standard output."""

import asyncio
import os
import time
from contextlib import aclosing

import click

from hummingbird.assembly.sandboxes import build as built
from hummingbird.assembly.sandboxes import check as checks
from hummingbird.assembly.sandboxes import reap as reaped
from hummingbird.domain.text import shortened

_LINE_CHARS = 160


def build(image: str, *, from_packages: bool) -> int:
    began = time.monotonic()
    name = asyncio.run(built(image, os.environ, _progress, from_packages=from_packages))
    click.echo(f"Made {name} in {time.monotonic() - began:.0f} s. Try it: hummingbird sandbox check podman")
    return 0


def check(backend: str, **wanted: str) -> int:
    fault = asyncio.run(_check(backend, **wanted))
    if fault:
        click.echo(f"hummingbird: The {backend} sandbox does not work here: {fault}", err=True)
        return 1
    click.echo(f"The {backend} sandbox works.")
    return 0


def gc() -> int:
    names = asyncio.run(reaped(os.environ))
    click.echo(f"Removed {len(names)} leftover sandboxes: {', '.join(names)}." if names else "Nothing was left over.")
    return 0


async def _check(backend: str, **wanted: str) -> str:
    fault = ""
    async with aclosing(checks(backend, os.environ, _progress, **wanted)) as lines:
        async for line in lines:
            fault = line.fault
            click.echo(f"{'fails' if fault else 'ok':5}  {line.what:38} {line.seconds:6.2f} s")
    return fault


def _progress(line: str) -> None:
    click.secho(shortened(line, _LINE_CHARS), err=True, dim=True)
