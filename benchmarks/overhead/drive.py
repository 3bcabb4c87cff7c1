"""Runs every loop against the mock and prints what each costs, first of all as a multiple of the bare loop.

Each run is a fresh process. Within a round the loops take turns, so that a busy minute of the machine hits
all of them, and a ratio compares two runs of the same repeat. Every loop first holds a short conversation with
a validating mock: one that cheats, or that no provider would accept, is not measured.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.request import ProxyHandler, build_opener

from benchmarks.overhead import variants
from benchmarks.overhead.imports import BARE as BARE_PYTHON
from benchmarks.overhead.imports import cpu_s
from benchmarks.overhead.variants import BARE, ROOT, Variant

Measured = dict[str, float]
Round = tuple[int, int]  # turns, repeats
FULL: tuple[Round, ...] = ((100, 5), (400, 3))
QUICK: tuple[Round, ...] = ((25, 1),)
TRIAL_TURNS = 6
SILENT = {
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


class LoopFailedError(Exception):
    """A loop did not hold the conversation that it was measured on."""


class Mock:
    """The mock's process, seen from here."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opener = build_opener(ProxyHandler({}))

    def get(self, path: str) -> dict[str, int]:
        with self._opener.open(self.url + path, timeout=30) as response:
            answer: dict[str, int] = json.load(response)
            return answer


@contextmanager
def mock(*, validating: bool) -> Iterator[Mock]:
    command = [sys.executable, "-m", "benchmarks.overhead.mock"]
    environ = {**clean_environ(), "VALIDATE": "1" if validating else "0"}
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield Mock(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.terminate()


def clean_environ() -> dict[str, str]:
    """No proxies, no keys, no tracing; the same for everybody."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | SILENT


def hold(variant: Variant, server: Mock, turns: int) -> Measured:
    """One conversation in one fresh process; raises LoopFailedError."""
    server.get(f"/reset?turns={turns}&closing={variant.closing}")
    command = [*variant.argv, "--url", server.url, "--turns", str(turns), "--dialect", variant.dialect]
    done = subprocess.run(
        command, cwd=ROOT, env=clean_environ(), capture_output=True, text=True, timeout=1800, check=False
    )
    if done.returncode:
        raise LoopFailedError(f"{variant.name}: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    if (seen := server.get("/seen")["seen"]) != turns + 1:
        raise LoopFailedError(f"{variant.name}: {seen} requests instead of {turns + 1}")
    measured: Measured = json.loads(done.stdout.splitlines()[-1])
    return measured


def admitted(wanted: Sequence[Variant]) -> list[Variant]:
    """Those that exist here and hold a valid conversation; a note is printed about each of the others."""
    found: list[Variant] = []
    with mock(validating=True) as server:
        for variant in wanted:
            if missing := variant.missing():
                print(f"- {variant.name} skipped: {missing}")
                continue
            try:
                hold(variant, server, TRIAL_TURNS)
            except LoopFailedError as error:
                if variant in BARE.values():
                    raise  # there would be nothing to compare with
                print(f"- not measured: {error}")
                continue
            found.append(variant)
    return found


def measure(entrants: Sequence[Variant], turns: int, repeats: int) -> dict[str, list[Measured]]:
    taken: dict[str, list[Measured]] = {variant.name: [] for variant in entrants}
    with mock(validating=False) as server:
        for repeat in range(1, repeats + 1):
            print(f"{turns} turns, repeat {repeat} of {repeats}", file=sys.stderr, flush=True)
            for name, measured in one_repeat(entrants, server, turns).items():
                taken[name].append(measured)
    return taken


def one_repeat(entrants: Sequence[Variant], server: Mock, turns: int) -> dict[str, Measured]:
    """Every loop once, and after each the bare loop again: it is short, so that a single run of it is noisy."""
    taken: dict[str, list[Measured]] = {variant.name: [] for variant in entrants}
    python_s: list[float] = []
    for variant in entrants:
        python_s.append(cpu_s(BARE_PYTHON))
        for each in (variant, BARE[variant.dialect]):
            taken[each.name].append(hold(each, server, turns))
    over_python = {"import_cpu_s": -statistics.median(python_s)}
    return {
        name: {column: value + over_python.get(column, 0) for column, value in middle(runs).items()}
        for name, runs in taken.items()
    }


def middle(runs: Sequence[Measured]) -> Measured:
    return {column: statistics.median(run[column] for run in runs) for column in runs[0]}


def ratio(variant: Variant, taken: dict[str, list[Measured]]) -> float:
    pairs = zip(taken[variant.name], taken[BARE[variant.dialect].name], strict=True)
    return statistics.median(own["cpu_ms_per_turn"] / bare["cpu_ms_per_turn"] for own, bare in pairs)


def table(entrants: Sequence[Variant], taken: dict[str, list[Measured]]) -> str:
    lines = [
        "| loop | CPU per turn ÷ bare loop | CPU ms/turn | wall ms/turn | first call CPU ms "
        "| import CPU s over bare python | peak RSS MB |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    return "\n".join(lines + [row(variant, taken) for variant in entrants])


def row(variant: Variant, taken: dict[str, list[Measured]]) -> str:
    median, multiple = middle(taken[variant.name]), ratio(variant, taken)
    return (
        f"| {variant.title} | **{multiple:.{1 if multiple >= 10 else 2}f}×** | {median['cpu_ms_per_turn']:.2f} "
        f"| {median['wall_ms_per_turn']:.2f} | {median['first_call_cpu_ms']:.0f} "
        f"| {median['import_cpu_s']:.2f} | {median['peak_rss_mb']:.0f} |"
    )


def report(rounds: Sequence[Round] = FULL, wanted: Sequence[Variant] = tuple(variants.ALL)) -> None:
    print("\n## Overhead of the loop around the model\n")
    entrants = admitted(wanted)
    for turns, repeats in rounds:
        taken = measure(entrants, turns, repeats)
        print(f"\n### {turns} turns, median of {repeats}; the ratio is taken within each repeat\n")
        print(table(entrants, taken), flush=True)
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    print(f"\nPython {platform.python_version()}, {os.cpu_count()} CPUs, load {load} at the end.")


def parse_round(text: str) -> Round:
    turns, _, repeats = text.partition("x")
    return int(turns), int(repeats or 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the loops.")
    parser.add_argument("--rounds", nargs="+", type=parse_round, default=FULL, metavar="TURNSxREPEATS")
    parser.add_argument("--only", default="", help="part of a name; the bare loops always run")
    found = parser.parse_args()
    wanted = [v for v in variants.ALL if v in BARE.values() or found.only.lower() in v.name.lower()]
    report(found.rounds, wanted)


if __name__ == "__main__":
    main()
