"""Made-up failed logs in the shapes of tools and CI systems of which no labelled logs are at hand.

    python -m benchmarks.evidence.foreign_logs [--misses] [--show NAME]

The scripts are in foreign_logs.txt: lines that begin with `!` explain the failure, the one with `!!` best of all, and
`~name 400` stands for so many lines of ordinary output. Nothing there was copied from anybody's log; the tools'
formats are what they print everywhere. No weight is learned from these logs.
"""

import argparse
import random
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from benchmarks.evidence.scoring import Page, plain
from hummingbird.evidence.logs.log_analysis import analyse
from hummingbird.evidence.logs.log_preview import preview

BUDGET = 4608
SEEDS = 3
_FIRST = ("mozharness", "buildbot", "pytorch", "github", "kernel", "lava")  # families that were there before the halves
_HOLE = re.compile(r"\{(\w+)\}")
_SCRIPTS = Path(__file__).with_suffix(".txt")
_WORDS = (
    "cart", "order", "total", "parser", "buffer", "session", "cache", "widget", "layout", "frame", "socket", "stream",
    "token", "index", "reader", "writer", "planner", "router", "gateway", "mapper", "cursor", "vector", "matrix",
    "tensor", "kernel", "module", "loader", "resolver", "builder", "scanner", "encoder",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MadeUpLog:
    family: str
    name: str
    text: str
    wanted: tuple[str, ...]
    best: tuple[str, ...]


@dataclass(slots=True)
class ForeignScripts:
    """The scripts by family and name, and the ordinary lines that they ask for."""

    noise: dict[str, list[str]] = field(default_factory=dict)
    endings: dict[str, list[str]] = field(default_factory=dict)
    logs: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def read_scripts(path: Path = _SCRIPTS) -> ForeignScripts:
    scripts = ForeignScripts()
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        command, _, name = line.partition(" ")
        if command == "@noise":
            lines = scripts.noise.setdefault(name, [])
        elif command == "@ending":
            lines = scripts.endings.setdefault(name, [])
        elif command == "@log":
            families, _, name = name.partition(": ")
            lines = []
            scripts.logs.update(((family, name), lines) for family in families.split())
        elif command == "@end":
            lines += scripts.endings[name]
        else:
            lines.append(line)
    return scripts


def made_up_logs(seeds: int = SEEDS) -> Iterator[MadeUpLog]:
    scripts = read_scripts()
    for (family, name), lines in sorted(scripts.logs.items(), key=lambda item: list(_STAMPS).index(item[0][0])):
        for seed in range(seeds):
            yield _write_log(family, name, lines, scripts.noise, random.Random(f"{family} {name} {seed}"))


def _write_log(
    family: str, name: str, script: list[str], noise: dict[str, list[str]], chance: random.Random
) -> MadeUpLog:
    lines: list[str] = []
    wanted: dict[str, bool] = {}  # whether it explains best
    kept: dict[str, str] = {}
    clock = chance.randrange(60_000)
    for line in script:
        body = line.lstrip("!")
        if body.startswith("~"):
            kind, _, count = body[1:].partition(" ")
            bodies = chance.choices(noise[kind], k=int(int(count) * chance.uniform(0.6, 1.4)))
        else:
            bodies = [body]
        for one in bodies:
            filled = _HOLE.sub(lambda hole: _fill_hole(hole[1], chance, kept), one)
            clock += chance.randrange(900)
            lines.append(_STAMPS[family](filled, clock))
            if line.startswith("!") and (text := plain(_without_stamp(filled))):
                wanted[text] = line.startswith("!!")
    best = tuple(text for text, is_best in wanted.items() if is_best)
    return MadeUpLog(family, f"{family}: {name}", "\n".join(lines) + "\n", tuple(wanted), best)


def _fill_hole(name: str, chance: random.Random, kept: dict[str, str]) -> str:
    """Return a word `w`, a number `n`, a time `t`, an address `x`; a name with a digit means the same each time."""
    if name[-1].isdigit():
        return kept.setdefault(name, _fill_hole(name[:-1], chance, kept))
    if name == "n":
        return str(chance.randrange(2, 2000))
    if name == "t":
        return f"{chance.uniform(0.01, 90):.2f}"
    if name == "x":
        return f"{chance.randrange(1 << 44):012x}"
    if name == "long":
        return "".join(chance.choices("ABCDEFGHabcdefgh0123456789+/", k=3000))
    return chance.choice(_WORDS)


def _mozharness(text: str, clock: int) -> str:
    second, of = divmod(clock, 1000)
    time = f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
    if text.startswith("["):
        return text
    level, dash, body = text.partition(" - ")
    if not dash or level not in _LEVELS:
        level, body = "INFO", text
    return f"[task 2031-04-05T{time}.{of:03}Z] {time} {level:>8} - {body}"


def _buildbot(text: str, clock: int) -> str:
    return text if text.startswith("[") else _mozharness(text, clock).partition("Z] ")[2]


def _github(text: str, clock: int) -> str:
    second, of = divmod(clock, 1000)
    return f"2031-04-05T{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}.{of:03}1234Z {text}"


def _kernel(text: str, clock: int) -> str:
    return text.removeprefix("|") if text.startswith("|") else f"[{clock / 1000:12.6f}] {text}"


def _lava(text: str, clock: int) -> str:
    return text.removeprefix("|") if text.startswith("|") else f"<4>[{clock / 1000:12.6f}][    T1] {text}"


def _lava_plain(text: str, clock: int) -> str:
    second, of = divmod(clock, 1000)
    before = f"{clock % 9000:5} {second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}.{of:03}123  "
    said = text.removeprefix("|") if text.startswith("|") else f"<4>[{clock / 1000:12.6f}] {text}"
    return f"{before}{said}\n{before}" if clock % 2 else before + said


def _jenkins(text: str, clock: int) -> str:
    return f"[{_github(text, clock).replace('1234Z', 'Z', 1).replace(' ', '] ', 1)}"


def _bare(text: str, _: int) -> str:
    return text


_LEVELS = frozenset(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "FATAL"))
_STAMPS: dict[str, Callable[[str, int], str]] = {
    "mozharness": _mozharness, "buildbot": _buildbot, "pytorch": _github, "github": _github, "kernel": _kernel,
    "lava": _lava, "lavaplain": _lava_plain, "syzbot": _kernel, "bazel": _jenkins, "openshift": _github,
    "android": _jenkins,
    "yocto": _bare, "lit": _bare, "koji": _bare, "debian": _bare, "nix": _bare, "haskell": _github,
}  # fmt: skip


def _without_stamp(text: str) -> str:
    level, dash, body = text.partition(" - ")
    return body if dash and level in _LEVELS else text.removeprefix("|")


def half_of(family: str) -> str:
    """Say whether rules may be chosen with a look at a family's misses; by a hash of its name."""
    return "chosen on" if family in _FIRST or zlib.crc32(family.encode()) % 2 else "reported only"


@dataclass(frozen=True, slots=True)
class ForeignScore:
    hit: bool
    recall: float
    first: bool  # a best line is in the first region
    missing: tuple[str, ...]


def judge(log: MadeUpLog) -> ForeignScore:
    page = Page(preview(log.text, BUDGET))
    shown = [line for line in log.wanted if _has(page, line)]
    regions = analyse(log.text).regions
    first = Page(regions[0].excerpt if regions else "")
    missing = tuple(line for line in log.wanted if line not in shown)
    return ForeignScore(bool(shown), len(shown) / len(log.wanted), any(_has(first, line) for line in log.best), missing)


def _has(page: Page, line: str) -> bool:
    return page.has(line) or page.contains(line)


def report(*, misses: bool = False) -> None:
    found: dict[str, list[ForeignScore]] = {}
    print("## Evidence: made-up logs of foreign families, within 4,608 bytes\n")
    for log in made_up_logs():
        one = judge(log)
        found.setdefault(log.family, []).append(one)
        if misses and half_of(log.family) == "chosen on" and (one.recall < 1 or not one.first):
            print(f"{log.name}: recall {one.recall:.2f}, first {one.first}", *one.missing[:6], sep="\n    ")
    print("| family | logs | hit % | recall % | best line in region 1 % |\n|---|--:|--:|--:|--:|")
    for half in ("chosen on", "reported only"):
        of = [one for family, ones in found.items() if half_of(family) == half for one in ones]
        found[f"families {half}"] = of
    for family, of in found.items():
        means = (fmean(one.hit for one in of), fmean(one.recall for one in of), fmean(one.first for one in of))
        print(f"| {family} | {len(of)} | {' | '.join(f'{100 * mean:.1f}' for mean in means)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="name the logs of which something is missing")
    parser.add_argument("--show", metavar="NAME", help="print the preview of the logs with this name")
    chosen = parser.parse_args()
    if chosen.show:
        for log in made_up_logs(1):
            if chosen.show in log.name:
                print(f"# {log.name}", preview(log.text, BUDGET), sep="\n")
                print("## first region:", analyse(log.text).regions[0].excerpt, sep="\n")
        return
    report(misses=chosen.misses)


if __name__ == "__main__":
    main()
