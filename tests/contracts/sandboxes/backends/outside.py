"""Cases that another process plays: one that has given up root's rights, or that belongs to no pytest."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
SOMEBODY = 61234  # a user that no machine has: without a name, a home or a group


class Player:
    """`python -m tests.contracts.sandboxes.play`, asked for one case after the other."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.contracts.sandboxes.play", *arguments, "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )

    def play(self, case: str) -> str:
        """What went wrong; nothing when nothing did."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{case}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the player ended with {self._process.wait()}"
        return str(json.loads(line)["trouble"])

    def close(self) -> int:
        """How it ended."""
        self._process.communicate()
        return self._process.returncode
