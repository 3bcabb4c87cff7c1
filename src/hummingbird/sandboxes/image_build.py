"""Builds the image that podman sandboxes run, from the recipe that is shipped with the package.

`build_image` first tries a base image from a container registry. Without a registry it builds a root file system from
the packages of this Debian or Ubuntu system. That uses the system's package sources and proxies, and leaves neither in
the image.
"""

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hummingbird.core.errors import SandboxBroken, SandboxUnavailable
from hummingbird.core.limits import PACKAGES_STALL_S, PODMAN_CALL_S, REGISTRY_STALL_S, SANDBOX_OPEN_FILES, SANDBOX_UID
from hummingbird.sandboxes.local_process import LineCallback, run_program, stream_program
from hummingbird.sandboxes.podman_engine import PodmanEngine, filter_environment

RECIPE = Path(__file__).parent / "recipe"
_FETCH_OPTION = re.compile(r'Acquire::(https?::|Retries |Check-Valid-Until ).*".+";')
_ADDRESS = re.compile(r"^[^#]*?\b((?:https?|ftp|file|copy):/\S+)", re.MULTILINE)
_OFFLINE_HINT = (
    "build the image where a registry can be reached, and bring it here with `podman save` and `podman load`"
)


def read_packages() -> list[str]:
    return (RECIPE / "packages").read_text("ascii").split()


async def build_root_file_system(
    tarball: Path, environment: Mapping[str, str], report_line: LineCallback, etc: Path = Path("/etc")
) -> None:
    """Build a root file system from this system's packages and write it to `tarball`.

    `environment` is the complete environment of the programs. Raises SandboxUnavailable, which says what to install,
    when this system cannot build one; SandboxBroken when a program hangs.
    """
    suite, sources = _read_suite(etc), _apt_sources(etc)
    mmdebstrap, debootstrap = (shutil.which(name, path=environment["PATH"]) for name in ("mmdebstrap", "debootstrap"))
    if mmdebstrap:
        options = await _apt_fetch_options(environment)
        await _run_checked(mmdebstrap_argv(mmdebstrap, suite, sources, options, tarball), environment, report_line)
    elif debootstrap and os.geteuid() == 0:
        with tempfile.TemporaryDirectory(prefix="hummingbird-root-", dir=environment.get("TMPDIR")) as root:
            for argv in debootstrap_commands(debootstrap, suite, sources, Path(root), tarball):
                await _run_checked(argv, environment, report_line)
    else:
        raise SandboxUnavailable(
            f"Neither mmdebstrap nor root's debootstrap is here: `apt install mmdebstrap`, or {_OFFLINE_HINT}."
        )


def mmdebstrap_argv(
    program: str, suite: str, sources: Sequence[Path], options: Sequence[str], tarball: Path
) -> list[str]:
    return [
        program,
        "--variant=essential",
        f"--include={','.join(read_packages())}",
        *(f"--aptopt={option}" for option in options),
        "--dpkgopt=force-unsafe-io",  # after a power failure the image is simply built again
        f'--customize-hook=sh {shlex.quote(str(RECIPE / "finish"))} "$1"',
        "--skip=output/dev,cleanup/apt,cleanup/mmdebstrap",  # the recipe's `finish` has already removed these
        "--format=tar",
        suite,
        str(tarball),
        *map(str, sources),
    ]


def debootstrap_commands(
    program: str, suite: str, sources: Sequence[Path], root: Path, tarball: Path
) -> list[list[str]]:
    """Return the commands for debootstrap.

    debootstrap takes one address only, so packages from others (such as security updates) are not in the image.
    """
    found = next((found for path in sources if (found := _ADDRESS.search(path.read_text("utf-8")))), None)
    address = [] if found is None else [found[1]]
    return [
        [program, "--variant=minbase", f"--include={','.join(read_packages())}", suite, str(root), *address],
        ["sh", str(RECIPE / "finish"), str(root)],
        ["tar", "--numeric-owner", "--one-file-system", "-C", str(root), "-cf", str(tarball), "--exclude=./dev/*", "."],
    ]


async def _run_checked(argv: Sequence[str], environment: Mapping[str, str], report_line: LineCallback) -> None:
    ended = await stream_program(
        argv, {**environment, "DEBIAN_FRONTEND": "noninteractive"}, report_line, PACKAGES_STALL_S
    )
    if ended.code:
        raise SandboxUnavailable(
            f"{Path(argv[0]).name} could not make a root file system: {ended.error_summary} Fix that "
            "(`apt-get update` shows "
            f"whether packages can be had), or {_OFFLINE_HINT}."
        )


async def _apt_fetch_options(environment: Mapping[str, str]) -> list[str]:
    """Return how apt reaches its sources here, such as through a proxy. mmdebstrap does not read these settings."""
    try:
        dumped = await run_program(["apt-config", "dump"], environment, PODMAN_CALL_S)
    except SandboxBroken:
        return []
    lines = dumped.out.decode("utf-8", "replace").splitlines()
    return [line.removesuffix(";") for line in lines if _FETCH_OPTION.fullmatch(line)]


def _read_suite(etc: Path) -> str:
    release = etc / "os-release"
    found = (
        re.search(r'^VERSION_CODENAME="?([\w.-]+)', release.read_text("utf-8"), re.MULTILINE)
        if release.is_file()
        else None
    )
    if found is None or not (etc / "apt").is_dir():
        raise SandboxUnavailable(
            f"This is no Debian or Ubuntu system, so no image can be made of its packages: {_OFFLINE_HINT}."
        )
    return found[1]


def _apt_sources(etc: Path) -> list[Path]:
    """Return the distribution's own sources. Others name their suites differently, or add nothing that we need."""
    suite = re.compile(rf"^[^#]*\s{re.escape(_read_suite(etc))}(\s|$)", re.MULTILINE)
    folder = etc / "apt/sources.list.d"
    listed = [etc / "apt/sources.list", *sorted([*folder.glob("*.list"), *folder.glob("*.sources")])]
    return [path for path in listed if path.is_file() and suite.search(path.read_text("utf-8"))]


_FETCH_VARIABLES = (
    *("HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
_REGISTRY_VARIABLES = ("REGISTRY_AUTH_FILE", "DOCKER_CONFIG")


def recipe_digest() -> str:
    """Return a short digest of the recipe, which changes with what an image is made of."""
    found = hashlib.sha256()
    for path in sorted(RECIPE.iterdir()):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


async def build_image(
    image: str,
    *,
    environment: Mapping[str, str],
    report_line: LineCallback,
    from_packages: bool = False,
    registry_stall_s: float = REGISTRY_STALL_S,
) -> None:
    """Build the image and report progress to `report_line`.

    Raises SandboxUnavailable with the last output of what failed.
    """
    podman = PodmanEngine(environment)
    known = await podman.run("image", "exists", image)
    if known.code not in (0, 1):  # podman rejects the name: say so now, not after a long build
        raise SandboxUnavailable(f"Podman will not make an image {image!r}: {known.error_summary}")
    if from_packages:
        await _build_from_packages(podman, image, environment, report_line)
        return
    report_line(
        "podman build: the base image comes from a container registry, the rest from its distribution's packages."
    )
    refused = await _build_from_registry(podman, image, environment, report_line, registry_stall_s)
    if refused:
        report_line(f"That failed: {refused}")
        report_line("Making the image from this system's own packages instead, which needs no registry.")
        try:
            await _build_from_packages(podman, image, environment, report_line)
        except SandboxUnavailable as error:
            raise SandboxUnavailable(
                f"Podman could not build the image: {refused} Without a registry: {error}"
            ) from error


async def _build_from_registry(
    podman: PodmanEngine, image: str, environment: Mapping[str, str], report_line: LineCallback, stall_s: float
) -> str:
    """Return why the build failed, or an empty string."""
    argv = podman.build_argv(
        "build",
        f"--tag={image}",
        f"--label=hummingbird.recipe={recipe_digest()}",
        "--layers=false",
        # give both: with one of them, podman asks for more of the other than an unprivileged user gets
        f"--ulimit=nofile={SANDBOX_OPEN_FILES}:{SANDBOX_OPEN_FILES}",
        "--ulimit=nproc=4096:4096",
        f"--file={RECIPE / 'Containerfile'}",
        str(RECIPE),
    )
    fetching = {**podman.environment, **filter_environment(environment, (*_FETCH_VARIABLES, *_REGISTRY_VARIABLES))}
    try:
        built = await stream_program(argv, fetching, report_line, stall_s)
    except SandboxBroken as error:
        return str(error)
    return (built.error_summary or f"exit code {built.code}.") if built.code else ""


async def _build_from_packages(
    podman: PodmanEngine, image: str, environment: Mapping[str, str], report_line: LineCallback
) -> None:
    with tempfile.TemporaryDirectory(prefix="hummingbird-image-", dir=environment.get("TMPDIR")) as folder:
        tarball = Path(folder) / "root.tar"
        await build_root_file_system(tarball, filter_environment(environment, _FETCH_VARIABLES), report_line)
        report_line(f"podman import: {tarball.stat().st_size / 1e6:.0f} MB.")
        argv = podman.build_argv(
            "import",
            f"--change=USER {SANDBOX_UID}:{SANDBOX_UID}",
            "--change=WORKDIR /tmp",
            f"--change=LABEL hummingbird.recipe={recipe_digest()}",
            str(tarball),
            image,
        )
        imported = await stream_program(argv, podman.environment, report_line, PACKAGES_STALL_S)
    if imported.code:
        raise SandboxUnavailable(
            f"Podman could not import the image: {imported.error_summary} Is there space on its disk?"
        )
