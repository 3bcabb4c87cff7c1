"""The measured process of the memory part: standard input in chunks through the streaming form, then one preview.

Prints what it took as JSON. With `--idle` it imports the same and reads nothing. The one who feeds it makes the log.
"""

import argparse
import json
import os
import sys
import time

from benchmarks.evidence import engine
from benchmarks.overhead.meter import peak_rss_mb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--budget", type=int, default=4608)
    chosen = parser.parse_args()
    make = engine.reader()
    if make is None:
        raise SystemExit("there is no streaming form in this tree")
    reading, began, size, shown = make(), time.process_time(), 0, ""
    if not chosen.idle:
        while chunk := os.read(sys.stdin.fileno(), engine.CHUNK):
            reading.feed(chunk)
            size += len(chunk)
        shown = reading.text(chosen.budget)
    taken = time.process_time() - began
    told = {"peak_mb": peak_rss_mb(), "cpu_s": taken, "bytes": size, "shown": len(shown.encode("utf-8", "replace"))}
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
