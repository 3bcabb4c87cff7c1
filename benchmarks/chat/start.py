"""How long it takes from the command to a prompt that takes a key, in a pseudo-terminal, beside what is started
anyway: an interpreter, one with prompt_toolkit, and a bare prompt.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chat.echo import Terminal
from benchmarks.chat.spread import share

_BARE = Path(__file__).with_name("bare_prompt.py")
_KEY = "λ".encode()


@dataclass(frozen=True, slots=True)
class Start:
    """What one start took."""

    wall_s: float
    cpu_s: float


def report(times: int) -> None:
    print(f"## Chat: from the command to a prompt that takes keys, {times} times, interleaved\n")
    print("| program | p50 ms | quickest ms | p50 ÷ bare prompt | CPU ms, p50 |")
    print("|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        programs: dict[str, Callable[[], Start]] = {
            "`python -c pass`": lambda: _ran("pass"),
            "`python -c 'import prompt_toolkit'`": lambda: _ran("import prompt_toolkit"),
            "bare prompt_toolkit": lambda: _prompted(b"bare>", str(_BARE)),
            "**`hummingbird chat`**": lambda: _chat(Path(folder)),
        }
        for deed in programs.values():
            deed()  # the second time files are in memory, as they are for whoever works with it
        taken: dict[str, list[Start]] = {name: [] for name in programs}
        for _ in range(times):
            for name, deed in programs.items():
                taken[name].append(deed())
    bare = share([one.wall_s for one in taken["bare prompt_toolkit"]], 0.5)
    for name, found in taken.items():
        walls = [one.wall_s for one in found]
        p50, cpu = share(walls, 0.5), share([one.cpu_s for one in found], 0.5)
        print(f"| {name} | {p50:.0f} | {min(walls) * 1000:.0f} | {p50 / bare:.1f}× | {cpu:.0f} |")
    print()


def _ran(code: str) -> Start:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(time.perf_counter() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _chat(folder: Path) -> Start:
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "HUMMINGBIRD_HOME": str(folder / "state"),
        "OPENAI_API_KEY": "k-123456789",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }
    return _prompted(b"ready", "-m", "hummingbird", "chat", "--workspace", str(folder), environment=environment)


def _prompted(sign: bytes, *words: str, environment: dict[str, str] | None = None) -> Start:
    """Until the prompt stands there and a key that was typed then is echoed."""
    began = time.perf_counter()
    terminal = Terminal(*words, environment=environment)
    try:
        terminal.wait_for(sign)
        terminal.write(_KEY)
        terminal.wait_for(_KEY)
        return Start(time.perf_counter() - began, _cpu_s(terminal.process))
    finally:
        terminal.close()


def _cpu_s(process: int) -> float:
    """Return what a running process has used of the processor, with all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
