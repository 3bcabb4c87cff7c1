"""The image: what is in it, that it can be made without a registry, and that its recipe is shipped."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from hummingbird.core.errors import SandboxUnavailable
from hummingbird.sandboxes.command_sandbox import CommandSandbox
from hummingbird.sandboxes.image_build import RECIPE, build_image, read_packages, recipe_digest
from hummingbird.sandboxes.podman import PodmanBackend
from hummingbird.sandboxes.registry import DEFAULT_IMAGE
from tests.real_parts import missing
from tests.sandbox_image import sandbox_image
from tests.sandboxes.containers import QUICK_MMDEBSTRAP, podman

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image

ROOT = Path(__file__).parents[2]
TOOLS = (
    "awk bash bzip2 cat cmp diff file find gawk git grep gunzip gzip jq python3 sed sh sort tar unzip xargs xz yq zstd"
)


@pytest.fixture
def name() -> Iterator[str]:
    """For an image that a test makes."""
    name = f"localhost/hummingbird-made-test:{uuid4().hex[:12]}"
    yield name
    podman("rmi", "--force", "--ignore", name)


@pytest.fixture
def quick(tmp_path: Path) -> dict[str, str]:
    """An environment whose mmdebstrap makes a root file system of one file, and whose registries are this machine."""
    if shutil.which("podman") is None:
        missing("podman is not installed; `scripts/real-parts` as root installs it")
    (tmp_path / "bin").mkdir()
    quick = tmp_path / "bin/mmdebstrap"
    quick.write_text(QUICK_MMDEBSTRAP)
    quick.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def _registry(tmp_path: Path, address: str) -> dict[str, str]:
    """As an operator would send every pull to a registry of their own."""
    path = tmp_path / "registries.conf"
    path.write_text(f'[[registry]]\nprefix = "docker.io"\nlocation = "{address}"\ninsecure = true\n')
    return {"CONTAINERS_REGISTRIES_CONF": str(path)}


def _made(name: str) -> dict[str, object]:
    found = podman("inspect", "--type=image", name)
    assert found.returncode == 0, found.stderr
    config: dict[str, object] = json.loads(found.stdout)[0]["Config"]
    return {key: config.get(key) for key in ("User", "WorkingDir")}


async def test_the_image_has_every_tool_no_way_to_rights_and_no_trace_of_where_it_was_made() -> None:
    sandbox = CommandSandbox(PodmanBackend(sandbox_image(), environment=os.environ))
    await sandbox.start()
    try:
        absent = await sandbox.exec(f"for tool in {TOOLS}; do command -v $tool >/dev/null || echo $tool; done")
        assert absent.stdout == b""
        rights = await sandbox.exec("find / -xdev -type f -perm /6000")
        assert rights.stdout == b""
        traces = await sandbox.exec("cat /etc/resolv.conf; find /etc/apt /var/lib/apt /root -mindepth 1 2>/dev/null")
        assert traces.stdout == b""
        me = await sandbox.exec("id -un; yq -c .a", b"a: [1, {b: c}]")
        assert me.stdout == b'sandbox\n[1,{"b":"c"}]\n'
    finally:
        await sandbox.cleanup()


@pytest.mark.thorough
async def test_without_a_registry_the_image_is_made_of_packages_and_runs_as_the_same_user(
    tmp_path: Path, quick: dict[str, str], name: str
) -> None:
    """The registry is a port of this machine on which nobody listens."""
    lines: list[str] = []
    environment = {**quick, **_registry(tmp_path, "127.0.0.1:9")}
    await build_image(name, environment=environment, report_line=lines.append)
    assert _made(name) == {"User": "65532:65532", "WorkingDir": "/tmp"}
    told = "\n".join(lines)
    assert "comes from a container registry" in told
    assert "That failed: " in told
    assert "127.0.0.1:9" in told
    assert "from this system's own packages instead" in told
    assert "I: quick" in told


@pytest.mark.thorough
async def test_a_registry_that_never_answers_is_given_up_on(tmp_path: Path, quick: dict[str, str], name: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    lines: list[str] = []
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        environment = {**quick, **_registry(tmp_path, f"{host}:{port}")}
        await build_image(name, environment=environment, report_line=lines.append, registry_stall_s=1)
    assert any("`podman build` wrote nothing for 1 s" in line for line in lines)
    assert _made(name)["User"] == "65532:65532"


@pytest.mark.thorough
async def test_with_neither_registry_nor_packages_both_reasons_are_told(
    tmp_path: Path, quick: dict[str, str], name: str
) -> None:
    (tmp_path / "bin/mmdebstrap").write_text("#!/bin/sh\necho 'E: no packages either' >&2\nexit 25\n")
    environment = {**quick, **_registry(tmp_path, "127.0.0.1:9")}
    with pytest.raises(SandboxUnavailable, match=r"`podman build` .*Without a registry.*E: no packages either"):
        await build_image(name, environment=environment, report_line=lambda _: None, registry_stall_s=1)


@pytest.mark.thorough
async def test_asked_for_packages_no_registry_is_tried(tmp_path: Path, quick: dict[str, str], name: str) -> None:
    lines: list[str] = []
    await build_image(name, environment=quick, report_line=lines.append, from_packages=True)
    assert lines[0] == "I: quick"
    assert not [line for line in lines if "registry" in line]


async def test_a_name_that_podman_will_not_take_is_refused_before_any_work(quick: dict[str, str]) -> None:
    lines: list[str] = []
    with pytest.raises(SandboxUnavailable, match="invalid reference format"):
        await build_image("NOT A NAME", environment=quick, report_line=lines.append)
    assert not lines


@pytest.mark.thorough
async def test_an_image_that_cannot_be_stored_is_told_in_podmans_words(
    tmp_path: Path, quick: dict[str, str], name: str
) -> None:
    (tmp_path / "bin/mmdebstrap").write_text(QUICK_MMDEBSTRAP.replace("tar -cf", "echo no tarball >"))
    with pytest.raises(SandboxUnavailable, match="could not import the image: Error: "):
        await build_image(name, environment=quick, report_line=lambda _: None, from_packages=True)


async def test_without_podman_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="Podman is not installed"):
        await build_image("any", environment={"PATH": str(tmp_path)}, report_line=lambda _: None)


@pytest.mark.thorough
def test_the_recipe_is_shipped_in_the_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    files = [path.name for path in RECIPE.iterdir()]
    assert sorted(files) == ["Containerfile", "finish", "packages"]
    assert {f"hummingbird/sandboxes/recipe/{file}" for file in files} <= shipped


def test_what_is_built_by_default_is_what_is_used_by_default() -> None:
    assert DEFAULT_IMAGE in (RECIPE / "Containerfile").read_text()


def test_the_containerfile_takes_its_packages_from_the_one_list() -> None:
    text = (RECIPE / "Containerfile").read_text()
    assert "$(cat /recipe/packages)" in text
    assert not [package for package in read_packages() if f" {package} " in text.replace("\\\n", " ")]
    assert {"python3", "jq", "yq", "tar", "xz-utils", "file", "diffutils"} <= set(read_packages())
    assert len(recipe_digest()) == 12
