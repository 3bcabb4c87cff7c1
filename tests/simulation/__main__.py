"""`python -m tests.simulation`: play seeds, say what was covered, and shorten what fails."""

import argparse
import logging
import sys
import time
from collections import Counter

from tests.simulation.script import make_script
from tests.simulation.shrinking import shrink, to_source
from tests.simulation.simulation import Played, play


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> int:
    """Play what the command line asks for."""
    asked = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    asked.add_argument("--seeds", type=int, default=0, help="play so many seeds")
    asked.add_argument("--first", type=int, default=1, help="the first of them")
    asked.add_argument("--seed", type=int, help="play this one")
    asked.add_argument("--shrink", action="store_true", help="shorten each script that fails")
    asked.add_argument("--coverage", action="store_true", help="show which calls each fault has hit")
    asked.add_argument("-v", "--verbose", action="store_true", help="show every call and every fault")
    given = asked.parse_args()
    logging.getLogger("hummingbird").setLevel(logging.CRITICAL)
    if given.seed is not None:
        return _play_one(given.seed, verbose=given.verbose, shorten=given.shrink)
    return _play_many(given.first, given.seeds or 100, coverage=given.coverage)


def _play_one(seed: int, *, verbose: bool, shorten: bool) -> int:
    script = make_script(seed)
    if shorten:
        script = shrink(script).script
        _tell(to_source(script))
    played = play(script, trace=verbose)
    _tell("\n".join(played.trace))
    _tell(script.table())
    _tell(f"{played.virtual_s:.0f} virtual seconds, {played.calls} calls, {played.orders} orders, {played.notes} notes")
    _report(played)
    return 1 if played.violations else 0


def _report(played: Played) -> None:
    for sentence in played.violations:
        _tell(f"VIOLATION (seed {played.script.seed}): {sentence}")


def _play_many(first: int, seeds: int, *, coverage: bool) -> int:
    began, virtual_s, failed = time.perf_counter(), 0.0, []
    cpu = time.process_time()
    covered: Counter[tuple[str, str]] = Counter()
    for seed in range(first, first + seeds):
        played = play(make_script(seed))
        virtual_s += played.virtual_s
        covered += played.covered
        if played.violations:
            failed.append(seed)
            _report(played)
        sys.stdout.flush()
    if coverage:
        _tell(coverage_table(covered))
    real = time.perf_counter() - began
    cpu = time.process_time() - cpu
    _tell(
        f"{seeds} seeds, {len(failed)} failed, {sum(covered.values())} faults; {real:.0f} s, {cpu:.0f} CPU-seconds: "
        f"{60 * seeds / real:.0f} seeds a minute, {virtual_s / 3600 / real:.2f} virtual hours per real second"
    )
    return 1 if failed else 0


def coverage_table(covered: Counter[tuple[str, str]]) -> str:
    """Return how often each fault hit each kind of call, the most frequent kinds first."""
    faults = sorted({fault for fault, _ in covered})
    states = Counter[str]()
    for (_, state), times in covered.items():
        states[state] += times
    lines = [f"{len(covered)} pairs of {len(faults)} faults and {len(states)} calls were played:"]
    for state, times in states.most_common():
        hits = "; ".join(f"{fault} {covered[fault, state]}" for fault in faults if covered[fault, state])
        lines.append(f"{times:7}  {state:44} {hits}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
