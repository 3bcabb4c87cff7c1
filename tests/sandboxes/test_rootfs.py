"""A root file system of this system's packages: whose sources it uses, and what it says when it cannot."""

import subprocess
from pathlib import Path

import pytest

from hummingbird.core.errors import SandboxUnavailable
from hummingbird.sandboxes.image_build import RECIPE, build_root_file_system, debootstrap_commands, read_packages

DEBIAN = 'PRETTY_NAME="Any Linux"\nVERSION_CODENAME=sid-like\n'


class System:
    """A made-up Debian: its /etc and its programs, which write down what they are told."""

    def __init__(self, folder: Path) -> None:
        self.etc, self.bin, self.asked = folder / "etc", folder / "bin", folder / "asked"
        (self.etc / "apt/sources.list.d").mkdir(parents=True)
        self.bin.mkdir()
        (self.etc / "os-release").write_text(DEBIAN)
        self.environment = {"PATH": str(self.bin)}
        self.lines: list[str] = []

    def source(self, name: str, text: str) -> Path:
        path = self.etc / "apt" / name
        path.write_text(text)
        return path

    def program(self, name: str, text: str = "") -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/sh\nfor word; do echo "$word" >> {self.asked}; done\n{text}\n')
        path.chmod(0o755)

    async def make(self, tarball: Path) -> list[str]:
        """What the programs were told."""
        await build_root_file_system(tarball, self.environment, self.lines.append, self.etc)
        return self.asked.read_text().splitlines()


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


async def test_the_distributions_own_sources_are_used_whichever_way_they_are_written(
    system: System, tmp_path: Path
) -> None:
    system.program("mmdebstrap", "echo 'I: done' >&2")
    old = system.source("sources.list", "# deb x sid-like main\ndeb http://mirror.invalid/debian sid-like main\n")
    new = system.source("sources.list.d/system.sources", "Types: deb\nURIs: x\nSuites: sid-like sid-like-updates\n")
    for name, text in (
        ("sources.list.d/other.list", "deb https://other.invalid/apt other-sid-like main\n"),
        ("sources.list.d/off.list", "# deb http://mirror.invalid/debian sid-like main\n"),
        ("sources.list.d/system.sources.disabled", "Suites: sid-like\n"),
    ):
        system.source(name, text)
    asked = await system.make(tmp_path / "root.tar")
    assert asked[-4:] == ["sid-like", str(tmp_path / "root.tar"), str(old), str(new)]
    assert f"--include={','.join(read_packages())}" in asked
    assert system.lines == ["I: done"]


async def test_the_systems_way_to_its_sources_is_used_such_as_a_proxy(system: System, tmp_path: Path) -> None:
    dump = 'Acquire::http::Proxy "http://proxy.invalid:3128";\nAcquire::https "";\nAcquire::Check-Valid-Until "false";'
    system.program("mmdebstrap")
    (system.bin / "apt-config").write_text(f"#!/bin/sh\necho '{dump}\nAPT::Architecture \"amd64\";'\n")
    (system.bin / "apt-config").chmod(0o755)
    options = [word for word in await system.make(tmp_path / "root.tar") if word.startswith("--aptopt")]
    assert options == [
        '--aptopt=Acquire::http::Proxy "http://proxy.invalid:3128"',
        '--aptopt=Acquire::Check-Valid-Until "false"',
    ]


def test_without_mmdebstrap_debootstrap_gets_the_first_address(system: System, tmp_path: Path) -> None:
    source = system.source(
        "sources.list", "# deb http://off.invalid x\ndeb [arch=x] http://mirror.invalid/d sid-like main\n"
    )
    first, second, third = debootstrap_commands(
        "debootstrap", "sid-like", [source], tmp_path / "root", tmp_path / "root.tar"
    )
    assert first[-3:] == ["sid-like", str(tmp_path / "root"), "http://mirror.invalid/d"]
    assert second == ["sh", str(RECIPE / "finish"), str(tmp_path / "root")]
    assert third[0] == "tar"


async def test_a_failure_is_told_in_the_programs_words_with_what_to_do(system: System, tmp_path: Path) -> None:
    system.program("mmdebstrap", "echo 'E: Unable to locate package jq' >&2; echo 'I: cleaning up' >&2; exit 25")
    with pytest.raises(
        SandboxUnavailable, match=r"mmdebstrap could not .*: E: Unable to locate package jq .*apt-get update"
    ):
        await system.make(tmp_path / "root.tar")


async def test_without_either_program_the_sentence_says_what_to_install(system: System, tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="`apt install mmdebstrap`, or build the image where"):
        await system.make(tmp_path / "root.tar")


@pytest.mark.parametrize("release", [None, "NAME=Fedora\n"])
async def test_another_system_is_told_how_else_to_get_the_image(
    system: System, tmp_path: Path, release: str | None
) -> None:
    system.program("mmdebstrap")
    (system.etc / "os-release").unlink()
    if release is not None:
        (system.etc / "os-release").write_text(release)
    with pytest.raises(SandboxUnavailable, match=r"no Debian or Ubuntu system.*`podman save`"):
        await system.make(tmp_path / "root.tar")


def test_finishing_takes_out_rights_and_every_trace_of_the_machine(tmp_path: Path) -> None:
    """What was made on a machine must not tell of it."""
    for name in ("etc/apt/sources.list.d", "var/lib/apt/lists", "usr/bin", "usr/share/doc/x", "tmp", "root"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("etc/passwd", "etc/group", "etc/resolv.conf", "etc/hostname", "etc/apt/auth.conf", "root/.netrc"):
        (tmp_path / name).write_text("of this machine\n")
    for mode in (0o4755, 0o2755, 0o755):
        (tmp_path / f"usr/bin/{mode:o}").touch()
        (tmp_path / f"usr/bin/{mode:o}").chmod(mode)
    for _ in range(2):
        subprocess.run(["sh", str(RECIPE / "finish"), str(tmp_path)], check=True)
    assert [oct(path.stat().st_mode)[-4:] for path in sorted((tmp_path / "usr/bin").iterdir())] == ["0755"] * 3
    assert oct((tmp_path / "tmp").stat().st_mode)[-4:] == "1777"
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size}
    assert left == {"etc/passwd", "etc/group", "etc/hosts"}
    assert (tmp_path / "etc/passwd").read_text().count("sandbox:x:65532:65532") == 1
