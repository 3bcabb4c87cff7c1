"""Labelled logs on disk: a folder with `labels.jsonl` and packed logs. Knows nothing of how a preview is judged."""

import gzip
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

LOGS, JOBS, PAIRS, FIXES = "ci-logs", "ci-jobs", "ci-pairs", "bugswarm"
OPENERS: dict[str, Callable[[Path], bytes]] = {
    ".xz": lambda path: lzma.decompress(path.read_bytes()),
    ".gz": lambda path: gzip.decompress(path.read_bytes()),
}


@dataclass(frozen=True, slots=True)
class Label:
    """A failed log and what a person marked in it: `lines`, distinct and cleaned, and the same as whole `blocks`."""

    path: Path
    lines: tuple[str, ...]
    blocks: tuple[str, ...]
    source: str
    repo: str
    families: tuple[str, ...] = ()  # of logs that look alike: CI system, language

    def text(self) -> str:
        return read(self.path)


@dataclass(frozen=True, slots=True)
class Pair:
    """One job red and green; `errors` are the marked lines of the red log, first and last, counted from one."""

    name: str
    red: Path
    green: Path
    errors: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """One job red and green with the fix between them, and the files that it changes."""

    name: str
    repo: str
    red: Path
    green: Path
    patch: Path
    changed: tuple[str, ...]
    named: bool  # the red log names one of them
    new: bool  # it names one that the green log does not
    kind: str = ""  # of failure, as a person sorted it; "" if nobody did


def packed(path: Path) -> bytes:
    """The bytes of a log; one that somebody unpacked has lost its ending."""
    if not path.exists() and path.suffix in OPENERS:
        path = path.with_suffix("")
    return OPENERS.get(path.suffix, Path.read_bytes)(path)


def read(path: Path) -> str:
    return packed(path).decode("utf-8", "replace")


def labels(root: Path) -> list[Label]:
    return list(map(partial(_label, root / LOGS), _records(root / LOGS)))


def pairs(root: Path) -> list[Pair]:
    return list(map(partial(_pair, root / PAIRS), _records(root / PAIRS)))


def fixes(root: Path) -> list[Fix]:
    return list(map(partial(_fix, root / FIXES / "pairs"), _records(root / FIXES, "index.jsonl")))


def _records(folder: Path, name: str = "labels.jsonl") -> list[dict[str, Any]]:
    with (folder / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def _label(folder: Path, record: dict[str, Any]) -> Label:
    blocks = record.get("chunks") or [record["chunk"]]
    return Label(
        folder / record["log"],
        tuple(record["lines"]),
        tuple(blocks),
        record["source"],
        f"{record['source']}:{record['repo']}",
        tuple(record[key] for key in ("ci", "language") if key in record),
    )


def _pair(folder: Path, record: dict[str, Any]) -> Pair:
    errors = tuple((first, last) for first, last in record["error_lines"])
    return Pair(record["pair"], folder / record["fail"], folder / record["pass"], errors)


def _fix(folder: Path, record: dict[str, Any]) -> Fix:
    red, green, patch = (
        folder / f"{record['name']}.{part}.xz" for part in ("failing.log", "passing.log", "patch.diff")
    )
    return Fix(
        record["name"],
        record["repository"],
        red,
        green,
        patch,
        tuple(record["changed"]),
        record["named_in_log"],
        record["new_in_log"],
        record["category"] or "",
    )
