"""Runs logdetective's extractor inside its own environment: one JSON object per line in, one per line out.

Standard library and logdetective only. Its snippets come in the log's order; they are joined as they are, from the
front or, with `--from-end`, the last ones first, until the budget is full.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

Snippet = tuple[int, str]


def fitting(snippets: list[str], budget: int, *, from_end: bool) -> str:
    kept: list[str] = []
    left = budget + 1
    for snippet in reversed(snippets) if from_end else snippets:
        size = len(snippet.encode("utf-8", "replace")) + 1
        if size > left:
            kept.append(_part(snippet, left - 1, from_end=from_end))
            break
        kept.append(snippet)
        left -= size
    return "\n".join(filter(None, reversed(kept) if from_end else kept))


def _part(snippet: str, room: int, *, from_end: bool) -> str:
    raw = snippet.encode("utf-8", "replace")
    if room <= 0:
        return ""
    return (raw[len(raw) - room :] if from_end else raw[:room]).decode("utf-8", "ignore")


class Extracted:
    """What was found in the last log: another budget of the same log needs no second search, and costs the same."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._snippets: list[str] = []
        self._cpu_s = 0.0

    def answer(
        self, asked: dict[str, Any], extract: Callable[[str], list[Snippet]], *, from_end: bool
    ) -> dict[str, Any]:
        if asked["text"] != self._text:
            began = time.process_time()
            self._snippets = [text for _, text in extract(asked["text"])]
            self._text, self._cpu_s = asked["text"], time.process_time() - began
        return {"text": fitting(self._snippets, asked["budget"], from_end=from_end), "cpu_s": self._cpu_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=8)
    parser.add_argument("--from-end", action="store_true")
    chosen = parser.parse_args()
    extractor = import_module("logdetective.extractors").DrainExtractor
    print(json.dumps({"version": metadata.version("logdetective")}), flush=True)
    extracted = Extracted()
    for line in sys.stdin:
        # A new extractor each time: it learns, and one log must not teach it about the next.
        fresh = extractor(max_clusters=chosen.clusters)
        print(json.dumps(extracted.answer(json.loads(line), fresh, from_end=chosen.from_end)), flush=True)


if __name__ == "__main__":
    main()
