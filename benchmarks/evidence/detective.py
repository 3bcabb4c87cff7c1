"""logdetective's extractor as a contender: a worker in an environment of its own, asked over pipes."""

import json
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from benchmarks.rivals.setup import ROOT, environment

SET = "logdetective"
VARIANTS = {"8 clusters": ("--clusters", "8"), "64 clusters, from the end": ("--clusters", "64", "--from-end")}
ABSENT = (
    f"logdetective was not measured: `{environment(SET).name}` is absent. `python -m venv {environment(SET).name}` and "
    "`pip install logdetective` with that environment's pip make it."
)


def interpreter() -> Path | None:
    path = environment(SET) / "bin" / "python"
    return path if path.exists() else None


class Detective(AbstractContextManager["Detective"]):
    """One worker; `version` is what it says it is."""

    def __init__(self, python: Path, variant: str) -> None:
        self.version = ""
        self._argv = [str(python), "-m", "benchmarks.evidence.detective_worker", *VARIANTS[variant]]
        self._worker: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Detective":
        pipe = subprocess.PIPE
        self._worker = subprocess.Popen(self._argv, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
        self.version = self._heard()["version"]
        return self

    def __exit__(self, *why: object) -> None:
        assert self._worker is not None
        self._worker.__exit__(None, None, None)  # closes its pipes, which ends it, and waits

    def ask(self, text: str, budget: int) -> tuple[str, float]:
        """The extracted text and the CPU seconds of the worker."""
        assert self._worker is not None
        assert self._worker.stdin is not None
        self._worker.stdin.write(json.dumps({"text": text, "budget": budget}) + "\n")
        self._worker.stdin.flush()
        heard = self._heard()
        return heard["text"], heard["cpu_s"]

    def _heard(self) -> dict[str, Any]:
        assert self._worker is not None
        assert self._worker.stdout is not None
        line = self._worker.stdout.readline()
        if not line:
            raise SystemExit("logdetective's worker ended early; its message is above.")
        heard: dict[str, Any] = json.loads(line)
        return heard
