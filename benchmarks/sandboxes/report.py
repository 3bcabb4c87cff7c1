"""Runs every contender in turn and prints one table; ratios are to plain `subprocess` of the same run."""

import asyncio
import os
import shutil

from benchmarks.sandboxes.contenders import Contender, Ours, Plain
from benchmarks.sandboxes.measure import Amounts, Figures, figures
from hummingbird.app.console import SystemClock
from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes.registry import PODMAN, SandboxOptions, SandboxRegistry
from tests.sandbox_image import sandbox_image

GB, MB = 10**9, 10**6
FULL = Amounts(rounds=15, commands=100, stream_bytes=GB, file_bytes=500 * MB)
QUICK = Amounts(rounds=2, commands=3, stream_bytes=20 * MB, file_bytes=10 * MB)
_SLOW = Amounts(rounds=5, commands=20, stream_bytes=GB, file_bytes=500 * MB)


def report(*, quick: bool) -> None:
    print("## Sandboxes: what a command, a byte and a megabyte of memory cost\n")
    print(
        "| where | start + first command + cleanup ms | ms per command | over plain ms | 1 GB into `cat` ÷ plain "
        "| 500 MB file in ÷ plain | out ÷ plain | orchestrator's peak over before, MB |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    plain: Figures | None = None
    for contender, slow in _contenders():
        amounts = QUICK if quick else _SLOW if slow else FULL
        found = asyncio.run(figures(contender, amounts))
        plain = plain or found
        print(_row(contender.name, found, plain), flush=True)
    print()


def _contenders() -> list[tuple[Contender, bool]]:
    chosen: list[tuple[Contender, bool]] = [
        (Plain("plain `subprocess`, no sandbox"), False),
        (Ours("bubblewrap", _sandbox(SandboxOptions())), False),
    ]
    if shutil.which("podman"):
        image = sandbox_image()
        prefix = ["podman", "run", "--rm", "-i", "--network=none", "--pull=never", "--shm-size=700m"]
        prefix += ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", image]
        chosen.append((Plain("`podman run --rm` per command", prefix, keeps=False), True))
        chosen.append((Ours("podman", _sandbox(SandboxOptions(PODMAN, image))), True))
    return chosen


def _sandbox(wanted: SandboxOptions) -> Sandbox:
    return SandboxRegistry(wanted, os.environ, SystemClock(), print).make()


def _row(name: str, found: Figures, plain: Figures) -> str:
    return (
        f"| {name} | {found.round_trip_ms:.0f} | {found.command_ms:.1f} | {found.command_ms - plain.command_ms:.1f} "
        f"| {found.stream_mb_s / plain.stream_mb_s:.2f}× ({found.stream_mb_s:.0f} MB/s) "
        f"| {found.write_mb_s / plain.write_mb_s:.2f}× | {found.read_mb_s / plain.read_mb_s:.2f}× "
        f"| {found.peak_mb:.1f} |"
    )
