"""What this process has started and holds open, as the kernel tells it."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path


def descendants() -> set[tuple[int, str]]:
    """Number and name of every process that came from this one."""
    known = dict(filter(None, map(_described, Path("/proc").glob("[0-9]*"))))
    found = {os.getpid()}
    while more := {pid for pid, (parent, _) in known.items() if parent in found} - found:
        found |= more
    return {(pid, known[pid][1]) for pid in found - {os.getpid()}}


def youngest_child() -> int:
    """The process that this one started last."""
    ours = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                ours.append((int(fields[19]), int(folder.name)))
    return max(ours)[1]


def _described(folder: Path) -> tuple[int, tuple[int, str]] | None:
    try:
        before, _, after = (folder / "stat").read_text("utf-8", "replace").rpartition(")")
    except OSError:
        return None
    return int(folder.name), (int(after.split()[1]), before.partition("(")[2])


def descriptors() -> set[str]:
    """Sockets, pipes and files that are open here."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"descriptor {entry.name} {entry.readlink()}")
        except OSError:
            continue  # the one with which this directory is read
    return found


async def ran(*argv: str) -> str:
    """What a program of this machine wrote."""
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, argv
    return out.decode()
