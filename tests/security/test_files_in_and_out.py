"""Files go in and out by names that commands may have prepared: links, descriptors, archives. None leads to the host
, and no archive is unpacked there."""

import ast
import io
import re
import stat
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import hummingbird
from hummingbird.core.errors import CommandFailed
from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes.bubblewrap import BubblewrapBackend
from tests.security.attempt import Lack
from tests.security.backends import Backend, on_every_backend, with_sandbox
from tests.security.host import Host
from tests.security.weakened import WeakBubblewrap

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image
FOLDER = frozenset({Lack.FOLDER})


async def content(sandbox: Sandbox, path: str) -> bytes:
    """Empty when it cannot be read."""
    try:
        return b"".join([chunk async for chunk in sandbox.read_file_iter(path)])
    except CommandFailed:
        return b""


@dataclass
class Loot:
    """What was had by links, by writing through them, and by an archive."""

    read: bytes
    written: list[str]
    unpacked: list[str]
    devices: bytes


async def looted(sandbox: Sandbox, host: Host) -> Loot:
    targets = [host.planted[0], "/etc/shadow", "/proc/1/environ"]
    made = [f"ln -s {target} link{number}" for number, target in enumerate(targets)]
    await sandbox.exec("; ".join([*made, f"ln -s {host.folder} folder"]))
    names = [f"link{number}" for number in range(len(targets))]
    found = [await content(sandbox, f"/tmp/data/{name}") for name in [*names, f"folder/{host.planted_name}"]]
    for path in ("/tmp/data/folder/written", f"{host.folder}/written-too"):
        with suppress(CommandFailed):
            await sandbox.write_file(path, b"from inside")
    written = writings(host)
    # Absolute names are kept (-P), which is worse than what we do.
    await sandbox.exec("tar -xPf - -C /tmp/data", hostile_archive(host))
    devices = await sandbox.exec("find /tmp -type b -o -type c")
    return Loot(b"".join(found), written, writings(host), devices.stdout)


def writings(host: Host) -> list[str]:
    found = sorted(path.name for path in host.folder.iterdir() if path.name.startswith("written"))
    for name in found:
        (host.folder / name).unlink()
    return found


def hostile_archive(host: Host) -> bytes:
    """Names that climb out, names that begin at the root, a link to walk through, a link to a secret, a device."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        _add(tar, f"{'../' * 12}{host.folder}/written-up", tarfile.REGTYPE)
        _add(tar, f"{host.folder}/written-down", tarfile.REGTYPE)
        _add(tar, "gate", tarfile.SYMTYPE, str(host.folder))
        _add(tar, "gate/written-through", tarfile.REGTYPE)
        _add(tar, "shadow", tarfile.LNKTYPE, "/etc/shadow")
        _add(tar, "disk", tarfile.BLKTYPE)
    return whole.getvalue()


def _add(tar: tarfile.TarFile, name: str, kind: bytes, target: str = "") -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.devmajor, entry.size = kind, target, 254, 4 if kind == tarfile.REGTYPE else 0
    tar.addfile(entry, io.BytesIO(b"evil"))


@on_every_backend
def test_links_and_archives_from_inside_lead_nowhere_on_the_host(backend: Backend, host: Host) -> None:
    loot = with_sandbox(backend.place(), lambda sandbox: looted(sandbox, host))
    assert loot == Loot(b"", [], [], b"")


@pytest.mark.thorough
@on_every_backend
def test_they_lead_there_when_a_folder_of_the_host_is_in_sight(backend: Backend, host: Host) -> None:
    loot = with_sandbox(backend.weak(FOLDER, host), lambda sandbox: looted(sandbox, host))
    assert loot.read == "".join(host.secret).encode() * 2
    assert loot.written == ["written", "written-too"]
    assert loot.unpacked == ["written-down", "written-through", "written-up"]


def highest_descriptor() -> int:
    return max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())


async def by_descriptor(sandbox: Sandbox, host: Host) -> bytes:
    """Up from whatever directory the program inside holds open, and down again on the host. Descriptors keep the
    numbers that they have here, and a process that ran many tests has high ones."""
    up = "../" * 12
    paths = [f"/proc/self/fd/{fd}/{up}{host.planted[0]}" for fd in range(highest_descriptor() + 20)]
    return b"".join([await content(sandbox, path) for path in paths])


@pytest.mark.thorough
def test_no_descriptor_that_bubblewrap_was_started_with_leads_out(host: Host) -> None:
    assert with_sandbox(BubblewrapBackend(), lambda sandbox: by_descriptor(sandbox, host)) == b""


@pytest.mark.thorough
def test_a_descriptor_that_is_not_closed_leads_out(host: Host) -> None:
    place = WeakBubblewrap(frozenset({Lack.FORGETTING}), host)
    assert "".join(host.secret).encode() in with_sandbox(place, lambda sandbox: by_descriptor(sandbox, host))


UNPACKING = {"tarfile", "zipfile", "zipimport", "py7zr", "patoolib", "libarchive"}
UNPACKING_CALLS = {"unpack_archive", "extractall", "data_filter"}


def unpackers(text: str) -> set[str]:
    """What in a module can unpack an archive."""
    if not any(name in text for name in UNPACKING | UNPACKING_CALLS):
        return set()
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").partition(".")[0], *(each.name for each in node.names)}
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # a name given to import_module
    return found & (UNPACKING | UNPACKING_CALLS)


# The stand-in for GitLab makes archives, out of a case's files, and sends files out of one; of artifacts we read only
# the directory. Nothing is written by a name in an archive, and of somebody's archive no content is read.
ZIPS = {"gitlab/read/source.py": "directory", "lab/gitlab/read/ci.py": "content", "lab/gitlab/repository.py": "made"}
PACKING = {path: {"zipfile"} for path in ZIPS} | {"lab/gitlab/repository.py": {"tarfile", "zipfile"}}


@pytest.mark.thorough
def test_no_module_of_ours_can_unpack_an_archive() -> None:
    root = Path(hummingbird.__file__).parent
    texts = {str(path.relative_to(root)): path.read_text("utf-8") for path in root.rglob("*.py")}
    found = {path: unpackers(text) for path, text in texts.items()}
    assert len(found) > 50
    assert {path: names for path, names in found.items() if names} == PACKING
    barred = {
        "directory": r"\.extract|opened\.(?!infolist\(\))|ZipFile\((?!archive\) as opened:)",
        "content": r"\.extract",
        "made": r"\.(?:extract|getmember|namelist|read\()|mode=.r|ZipFile\([^,)]*\)",
    }
    for path, use in ZIPS.items():
        assert not re.search(barred[use], texts[path]), path


@pytest.mark.parametrize(
    "text",
    [
        "import tarfile",
        "import zipfile as z",
        "from tarfile import open",
        "from shutil import unpack_archive",
        "import shutil\nshutil.unpack_archive('x')",
        "import importlib\nimportlib.import_module('tarfile')",
    ],
)
def test_a_module_that_could_would_be_noticed(text: str) -> None:
    assert unpackers(text)


def test_a_planted_file_can_be_read_by_everybody_on_the_host(host: Host) -> None:
    """Else nothing would follow from its not being found."""
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o644 for path in host.planted)
    assert len(host.planted) >= 3
