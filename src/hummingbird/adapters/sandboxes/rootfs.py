"""A root file system out of this system's own packages, for machines that reach no container registry.

Uses the system's package sources, proxies included, and leaves none of them in what it makes. Knows no podman.
"""

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hummingbird.adapters.sandboxes.program import Told, followed, said
from hummingbird.domain.errors import SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import PACKAGES_STALL_S, PODMAN_CALL_S

RECIPE = Path(__file__).parent / "recipe"
_FETCH_OPTION = re.compile(r'Acquire::(https?::|Retries |Check-Valid-Until ).*".+";')
_ADDRESS = re.compile(r"^[^#]*?\b((?:https?|ftp|file|copy):/\S+)", re.MULTILINE)
_OFFLINE = "build the image where a registry can be reached, and bring it here with `podman save` and `podman load`"


def packages() -> list[str]:
    return (RECIPE / "packages").read_text("ascii").split()


async def make_root_file_system(
    tarball: Path, environment: Mapping[str, str], told: Told, etc: Path = Path("/etc")
) -> None:
    """`environment`: all that the programs get. Raises SandboxUnavailable when this system cannot, with what to
    install; SandboxBroken when it hangs."""
    suite, sources = _suite(etc), _sources(etc)
    mmdebstrap, debootstrap = (shutil.which(name, path=environment["PATH"]) for name in ("mmdebstrap", "debootstrap"))
    if mmdebstrap:
        options = await _fetch_options(environment)
        await _done(with_mmdebstrap(mmdebstrap, suite, sources, options, tarball), environment, told)
    elif debootstrap and os.geteuid() == 0:
        with tempfile.TemporaryDirectory(prefix="hummingbird-root-", dir=environment.get("TMPDIR")) as root:
            for argv in with_debootstrap(debootstrap, suite, sources, Path(root), tarball):
                await _done(argv, environment, told)
    else:
        raise SandboxUnavailable(
            f"Neither mmdebstrap nor root's debootstrap is here: `apt install mmdebstrap`, or {_OFFLINE}."
        )


def with_mmdebstrap(
    program: str, suite: str, sources: Sequence[Path], options: Sequence[str], tarball: Path
) -> list[str]:
    return [
        program,
        "--variant=essential",
        f"--include={','.join(packages())}",
        *(f"--aptopt={option}" for option in options),
        "--dpkgopt=force-unsafe-io",  # what is lost with the power is made again
        f'--customize-hook=sh {shlex.quote(str(RECIPE / "finish"))} "$1"',
        "--skip=output/dev,cleanup/apt,cleanup/mmdebstrap",  # `finish` has taken these out already
        "--format=tar",
        suite,
        str(tarball),
        *map(str, sources),
    ]


def with_debootstrap(program: str, suite: str, sources: Sequence[Path], root: Path, tarball: Path) -> list[list[str]]:
    """It takes one address, so what comes from another one, such as security updates, is not in it."""
    found = next((found for path in sources if (found := _ADDRESS.search(path.read_text("utf-8")))), None)
    address = [] if found is None else [found[1]]
    return [
        [program, "--variant=minbase", f"--include={','.join(packages())}", suite, str(root), *address],
        ["sh", str(RECIPE / "finish"), str(root)],
        ["tar", "--numeric-owner", "--one-file-system", "-C", str(root), "-cf", str(tarball), "--exclude=./dev/*", "."],
    ]


async def _done(argv: Sequence[str], environment: Mapping[str, str], told: Told) -> None:
    ended = await followed(argv, {**environment, "DEBIAN_FRONTEND": "noninteractive"}, told, PACKAGES_STALL_S)
    if ended.code:
        raise SandboxUnavailable(
            f"{Path(argv[0]).name} could not make a root file system: {ended.words} Mend that (`apt-get update` shows "
            f"whether packages can be had), or {_OFFLINE}."
        )


async def _fetch_options(environment: Mapping[str, str]) -> list[str]:
    """How apt reaches its sources here, such as through a proxy. mmdebstrap starts without that."""
    try:
        dumped = await said(["apt-config", "dump"], environment, PODMAN_CALL_S)
    except SandboxBroken:
        return []
    lines = dumped.out.decode("utf-8", "replace").splitlines()
    return [line.removesuffix(";") for line in lines if _FETCH_OPTION.fullmatch(line)]


def _suite(etc: Path) -> str:
    release = etc / "os-release"
    found = (
        re.search(r'^VERSION_CODENAME="?([\w.-]+)', release.read_text("utf-8"), re.MULTILINE)
        if release.is_file()
        else None
    )
    if found is None or not (etc / "apt").is_dir():
        raise SandboxUnavailable(
            f"This is no Debian or Ubuntu system, so no image can be made of its packages: {_OFFLINE}."
        )
    return found[1]


def _sources(etc: Path) -> list[Path]:
    """The distribution's own: third parties name their suites differently, or add nothing that we need."""
    suite = re.compile(rf"^[^#]*\s{re.escape(_suite(etc))}(\s|$)", re.MULTILINE)
    folder = etc / "apt/sources.list.d"
    listed = [etc / "apt/sources.list", *sorted([*folder.glob("*.list"), *folder.glob("*.sources")])]
    return [path for path in listed if path.is_file() and suite.search(path.read_text("utf-8"))]
