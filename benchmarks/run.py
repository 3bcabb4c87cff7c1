"""`python -m benchmarks.run [SECTION] [--quick] [--logs PATH]`: prints each section's measurements as Markdown."""

import argparse
import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.answers import report as answers_report
from benchmarks.cache import report as cache_report
from benchmarks.chat import report as chat_report
from benchmarks.concurrency import report as crowd_report
from benchmarks.evidence import __main__ as evidence_report
from benchmarks.overhead import drive, imports
from benchmarks.positions import report as position_report
from benchmarks.sandboxes import report as sandbox_report
from benchmarks.service import report as service_report
from benchmarks.sessions import report as session_report
from benchmarks.sources import report as source_report
from benchmarks.web import report as web_report


def overhead(quick: bool) -> None:
    drive.report(drive.QUICK if quick else drive.FULL)


def starts(quick: bool) -> None:
    imports.report(1 if quick else 7)


def cache(quick: bool) -> None:
    cache_report.report(quick=quick)


def concurrency(quick: bool) -> None:
    crowd_report.report(quick=quick)


def sandboxes(quick: bool) -> None:
    sandbox_report.report(quick=quick)


def sources(quick: bool) -> None:
    source_report.report(quick=quick)


def service(quick: bool) -> None:
    service_report.report(quick=quick)


def sessions(quick: bool) -> None:
    session_report.report(quick=quick)


def chat(quick: bool) -> None:
    chat_report.report(quick=quick)


def web(quick: bool) -> None:
    web_report.report(quick=quick)


def evidence(quick: bool, logs: Path | None = None) -> None:
    evidence_report.report(logs, quick=quick)


def positions(quick: bool, sources: Sequence[Path] = ()) -> None:
    position_report.report(sources, quick=quick)


def answers(_: bool) -> None:
    asyncio.run(answers_report.main())


# A section takes `quick` (small and once, to see that it works) and prints Markdown.
SECTIONS: dict[str, Callable[[bool], None]] = {
    "imports": starts,
    "overhead": overhead,
    "cache": cache,
    "concurrency": concurrency,
    "sandboxes": sandboxes,
    "sources": sources,
    "service": service,
    "sessions": sessions,
    "chat": chat,
    "web": web,
    "evidence": evidence,
    "positions": positions,
    "answers": answers,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("section", nargs="?", default="all", choices=[*SECTIONS, "all"])
    parser.add_argument("--quick", action="store_true", help="small numbers, one repeat: does it work at all?")
    parser.add_argument("--logs", type=Path, metavar="PATH", help="real labelled logs, for the evidence section")
    parser.add_argument(
        "--sources", type=Path, metavar="PATH", action="append", default=[], help="source trees, for the positions"
    )
    chosen = parser.parse_args()
    given = {
        "evidence": partial(evidence, logs=chosen.logs),
        "positions": partial(positions, sources=chosen.sources),
    }
    sections: dict[str, Callable[[bool], None]] = {**SECTIONS, **given}
    for name, section in sections.items():
        if chosen.section in (name, "all"):
            section(chosen.quick)


if __name__ == "__main__":
    main()
