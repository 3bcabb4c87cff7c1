"""What tests ask podman itself behind the sandbox's back, another process with a sandbox, and small images."""

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.real_parts import missing
from tests.sandbox_image import sandbox_image

QUICK_MMDEBSTRAP = """#!/bin/sh
echo "I: quick" >&2
for word; do case $word in *.tar) tar -cf "$word" -C / etc/os-release;; esac; done
"""


def podman(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["podman", *arguments], input=stdin, capture_output=True, check=False, timeout=60)


def exists(container: str) -> bool:
    return podman("container", "exists", container).returncode == 0


@contextmanager
def owner() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process with a sandbox, and the sandbox's container."""
    program = [sys.executable, str(Path(__file__).parent / "podman_owner.py"), sandbox_image()]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        container = process.stdout.readline().strip()
        try:
            assert exists(container)
            yield process, container
        finally:
            process.kill()
            process.wait()
            podman("rm", "-f", "-t", "0", "--ignore", container)


def tiny_image(files: Mapping[str, str], *, tmp: bool = True) -> str:
    """An image of busybox and these programs, by path. Kept in podman's store under what it is made of."""
    busybox = shutil.which("busybox")
    if busybox is None or shutil.which("podman") is None:
        missing("podman or busybox is not installed; `scripts/real-parts` as root installs them")
    content = Path(busybox).read_bytes()
    made_of = hashlib.sha256(content + repr((sorted(files.items()), tmp)).encode()).hexdigest()[:12]
    name = f"localhost/hummingbird-tiny-test:{made_of}"
    if podman("image", "exists", name).returncode:
        programs = {"bin/busybox": content, **{path: text.encode() for path, text in files.items()}}
        done = podman("import", "-", name, stdin=_packed(programs, tmp=tmp))
        assert done.returncode == 0, done.stderr
    return name


def _packed(programs: Mapping[str, bytes], *, tmp: bool) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        if tmp:
            folder = tarfile.TarInfo("tmp")
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)
        shell = tarfile.TarInfo("bin/sh")
        shell.type, shell.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(shell)
        for path, content in programs.items():
            file = tarfile.TarInfo(path)
            file.size, file.mode = len(content), 0o755
            tar.addfile(file, io.BytesIO(content))
    return whole.getvalue()
