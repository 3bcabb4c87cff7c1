"""The image that podman sandboxes run: made from the shipped recipe, with a registry or without one (X4).

A base image from a registry is tried first; where none can be had, the same packages come from this system's own
sources. Knows nothing of sandboxes.
"""

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hummingbird.adapters.sandboxes.engine import Podman, reduced
from hummingbird.adapters.sandboxes.program import Told, followed
from hummingbird.adapters.sandboxes.rootfs import RECIPE, make_root_file_system
from hummingbird.domain.errors import SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import PACKAGES_STALL_S, REGISTRY_STALL_S, SANDBOX_OPEN_FILES, SANDBOX_UID

_FETCHING = (
    *("HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
_REGISTRY_SETTINGS = ("REGISTRY_AUTH_FILE", "DOCKER_CONFIG")


def recipe() -> str:
    """What an image is made of, as a few characters that change with it."""
    found = hashlib.sha256()
    for path in sorted(RECIPE.iterdir()):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


async def build_image(
    image: str,
    *,
    environment: Mapping[str, str],
    told: Told,
    from_packages: bool = False,
    registry_stall_s: float = REGISTRY_STALL_S,
) -> None:
    """Makes it, telling what happens. Raises SandboxUnavailable, with the last words of whatever failed."""
    podman = Podman(environment)
    known = await podman.call("image", "exists", image)
    if known.code not in (0, 1):  # better now than after all the work, which would be left without a name
        raise SandboxUnavailable(f"Podman will not make an image {image!r}: {known.words}")
    if from_packages:
        await _from_packages(podman, image, environment, told)
        return
    told("podman build: the base image comes from a container registry, the rest from its distribution's packages.")
    refused = await _from_registry(podman, image, environment, told, registry_stall_s)
    if refused:
        told(f"That failed: {refused}")
        told("Making the image from this system's own packages instead, which needs no registry.")
        try:
            await _from_packages(podman, image, environment, told)
        except SandboxUnavailable as error:
            raise SandboxUnavailable(
                f"Podman could not build the image: {refused} Without a registry: {error}"
            ) from error


async def _from_registry(podman: Podman, image: str, environment: Mapping[str, str], told: Told, stall_s: float) -> str:
    """Why it failed, or nothing."""
    argv = podman.command(
        "build",
        f"--tag={image}",
        f"--label=hummingbird.recipe={recipe()}",
        "--layers=false",
        # both at once, and no more than an unprivileged podman gets
        f"--ulimit=nofile={SANDBOX_OPEN_FILES}:{SANDBOX_OPEN_FILES}",
        "--ulimit=nproc=4096:4096",
        f"--file={RECIPE / 'Containerfile'}",
        str(RECIPE),
    )
    fetching = {**podman.environment, **reduced(environment, (*_FETCHING, *_REGISTRY_SETTINGS))}
    try:
        built = await followed(argv, fetching, told, stall_s)
    except SandboxBroken as error:
        return str(error)
    return (built.words or f"exit code {built.code}.") if built.code else ""


async def _from_packages(podman: Podman, image: str, environment: Mapping[str, str], told: Told) -> None:
    with tempfile.TemporaryDirectory(prefix="hummingbird-image-", dir=environment.get("TMPDIR")) as folder:
        tarball = Path(folder) / "root.tar"
        await make_root_file_system(tarball, reduced(environment, _FETCHING), told)
        told(f"podman import: {tarball.stat().st_size / 1e6:.0f} MB.")
        argv = podman.command(
            "import",
            f"--change=USER {SANDBOX_UID}:{SANDBOX_UID}",
            "--change=WORKDIR /tmp",
            f"--change=LABEL hummingbird.recipe={recipe()}",
            str(tarball),
            image,
        )
        imported = await followed(argv, podman.environment, told, PACKAGES_STALL_S)
    if imported.code:
        raise SandboxUnavailable(f"Podman could not import the image: {imported.words} Is there space on its disk?")
