"""The clock inside every measured process: imports, then the first call, then the turns.

Standard library only, since each rival runs in its own environment. Refuses to know which loop it measures;
it insists that the tool ran as often as it should have and that the conversation came to its end.
"""

import time

from benchmarks.overhead import dialogue


class Meter:
    """Make one when all imports are done, let the tool call `echo`, and `finish` with the loop's answer."""

    def __init__(self) -> None:
        self._imports_cpu_s = time.process_time()  # since the process began; the driver subtracts bare python
        import argparse  # not before the clock: it would be billed to every loop's imports

        parser = argparse.ArgumentParser()
        parser.add_argument("--url", required=True)
        parser.add_argument("--turns", type=int, required=True)
        parser.add_argument("--dialect", choices=("chat", "anthropic"), default="chat")
        found = parser.parse_args()
        self.url: str = found.url
        self.turns: int = found.turns
        self.dialect: str = found.dialect
        self._calls = 0
        self._begun_cpu_s = self._first_cpu_s = time.process_time()
        self._first_wall_s = time.perf_counter()

    def echo(self, text: str) -> str:
        """The tool. Its first run ends the first call, with all that was built or imported on the way."""
        if self._calls == 0:
            self._first_cpu_s, self._first_wall_s = time.process_time(), time.perf_counter()
        self._calls += 1
        return dialogue.echo(text)

    def finish(self, answer: str) -> None:
        """Print the measurements. Since the first run of the tool the model was asked `turns` times."""
        cpu_s, wall_s = time.process_time() - self._first_cpu_s, time.perf_counter() - self._first_wall_s
        if self._calls != self.turns or dialogue.FINAL not in answer:
            raise SystemExit(f"{self._calls} tool calls instead of {self.turns}, then {answer!r:.200}")
        import json

        measured = {
            "cpu_ms_per_turn": round(cpu_s * 1000 / self.turns, 3),
            "wall_ms_per_turn": round(wall_s * 1000 / self.turns, 3),
            "first_call_cpu_ms": round((self._first_cpu_s - self._begun_cpu_s) * 1000, 1),
            "import_cpu_s": round(self._imports_cpu_s, 4),
            "peak_rss_mb": round(peak_rss_mb(), 1),
            "turns": self.turns,
        }
        print(json.dumps(measured), flush=True)


def peak_rss_mb() -> float:
    """VmHWM where there is one: on Linux ru_maxrss begins at the size of the process that forked this one."""
    from pathlib import Path  # here, so that it is not billed to every loop's imports

    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        import resource
        import sys

        unit = 1024 * 1024 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
