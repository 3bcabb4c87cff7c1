"""The agent's image, built for real from deploy/Containerfile, without a registry and without a network.

Three things stand in for what a registry would give: a base made of this system's packages, a kubectl that only says
its name, and a folder of wheels, which are downloaded once and kept in the environment of the tests. Each has a name
that changes with what it is made of, so of several processes one makes it while the others wait.
"""

import asyncio
import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hummingbird import __version__
from hummingbird.core.errors import HummingbirdError
from hummingbird.sandboxes.image_build import _apt_fetch_options, _apt_sources, _read_suite
from hummingbird.sandboxes.podman_engine import PodmanEngine
from tests.real_parts import missing, program

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
EXTRAS = ("otel", "sentry")
LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")  # both, or podman asks for more than it may have
_PACKAGES = "ca-certificates,python3,python3-venv"
_KUBECTL = "#!/bin/sh\necho stand-in\n"
_LABEL = "hummingbird.test=agent-image"
_OLD = "2h"  # nobody uses an image of the tests any more that is older


def podman(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    engine = PodmanEngine(os.environ)
    argv = engine.build_argv(*arguments)
    return subprocess.run(argv, env=engine.environment, capture_output=True, text=True, check=False, timeout=timeout_s)


def agent_image() -> str:
    """Its name."""
    for name in ("podman", "mmdebstrap"):
        program(name)
    with _alone():
        base, kubectl = _base(), _kubectl()
        wheels = _wheels(base)
        return _made("agent", (base, _KUBECTL, *_context()), lambda name: _build(name, base, kubectl, wheels))


@contextmanager
def _alone() -> Iterator[None]:
    path = Path(tempfile.gettempdir()) / f"hummingbird-test-agent-image-{os.getuid()}.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _made(part: str, ingredients: Iterable[str], make: Callable[[str], None]) -> str:
    name = f"localhost/hummingbird-test-{part}:{_digest(ingredients)}"
    if podman("image", "exists", name).returncode:
        make(name)
    return name


def _digest(ingredients: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(ingredients).encode()).hexdigest()[:16]


def _context() -> Iterator[str]:
    """All that the build reads."""
    locks = [ROOT / "requirements/pip.lock", ROOT / "requirements/run.lock", *ROOT.glob("deploy/extras/*.lock")]
    parts = [CONTAINERFILE, *locks, ROOT / "pyproject.toml"]
    for path in [*sorted(parts), *sorted((ROOT / "src").rglob("*"))]:
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _base() -> str:
    etc = Path("/etc")

    def make(name: str) -> None:
        options = asyncio.run(_apt_fetch_options(os.environ))
        with tempfile.TemporaryDirectory() as folder:
            tarball = f"{folder}/root.tar"
            argv = [
                "mmdebstrap",
                "--quiet",
                "--variant=essential",
                f"--include={_PACKAGES}",
                "--dpkgopt=force-unsafe-io",
            ]
            argv += [
                *(f"--aptopt={one}" for one in options),
                "--skip=output/dev",
                "--format=tar",
                _read_suite(etc),
                tarball,
            ]
            done = subprocess.run([*argv, *map(str, _apt_sources(etc))], capture_output=True, text=True, check=False)
            if done.returncode:
                missing(f"no base image can be made: {done.stderr[-300:]}")
            _worked(podman("import", tarball, name, timeout_s=300))

    try:
        return _made("base", (_PACKAGES, _read_suite(etc)), make)
    except HummingbirdError as error:
        missing(f"no base image can be made: {error}")


def _kubectl() -> str:
    def make(name: str) -> None:
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            with tarfile.open(file.name, "w") as tar:
                entry = tarfile.TarInfo("bin/kubectl")
                entry.mode, entry.size = 0o755, len(_KUBECTL)
                tar.addfile(entry, io.BytesIO(_KUBECTL.encode()))
            _worked(podman("import", file.name, name))

    return _made("kubectl", (_KUBECTL,), make)


def _wheels(base: str) -> Path:
    """For the Python of the base."""
    asked = podman(
        "run", "--rm", "--network=none", *LIMITS, base, "python3", "-c", "import sys; print(*sys.version_info[:2])"
    )
    _worked(asked)
    version = ".".join(asked.stdout.split())
    shared = [ROOT / f"requirements/{name}.lock" for name in ("pip", "run")]
    locks = [*shared, *(ROOT / f"deploy/extras/{name}.lock" for name in EXTRAS)]
    digest = _digest([version, *(path.read_text(encoding="utf-8") for path in locks)])
    folder = Path(sys.prefix) / f"deploy-wheels-{digest}"
    if not folder.is_dir():
        for old in folder.parent.glob("deploy-wheels-*"):
            shutil.rmtree(old)
        unfinished = folder.with_name("deploy-wheels-unfinished")
        argv = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
        ]
        argv += ["--only-binary=:all:", f"--python-version={version}", f"--dest={unfinished}"]
        argv += [f"--requirement={path}" for path in locks]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            missing(f"the wheels cannot be downloaded: {done.stderr[-300:]}")
        unfinished.rename(folder)
    return folder


def _build(name: str, base: str, kubectl: str, wheels: Path) -> None:
    podman("image", "prune", "--all", "--force", f"--filter=label={_LABEL}", f"--filter=until={_OLD}")
    arguments = {
        "BASE": by_digest(base),
        "KUBECTL": by_digest(kubectl),
        "EXTRAS": ",".join(EXTRAS),
        "VERSION": __version__,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels",
    }
    _worked(
        podman(
            "build",
            f"--tag={name}",
            f"--label={_LABEL}",
            "--layers=false",
            "--network=none",
            "--pull=never",
            *LIMITS,
            f"--volume={wheels}:/wheels:ro",
            *(f"--build-arg={key}={value}" for key, value in arguments.items()),
            f"--file={CONTAINERFILE}",
            str(ROOT),
            timeout_s=500,
        )
    )


def by_digest(name: str) -> str:
    """Return the name of a local image with its digest in place of its tag."""
    asked = podman("image", "inspect", "--format", "{{.Digest}}", name)
    _worked(asked)
    return f"{name.rpartition(':')[0]}@{asked.stdout.strip()}"


def _worked(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, f"{done.args}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
