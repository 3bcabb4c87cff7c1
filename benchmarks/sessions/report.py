"""The section of sessions: as they grow, a turn's journal, and search over very many."""

from benchmarks.sessions import buckets, growth, search, turns


def report(*, quick: bool) -> None:
    growth.report(quick=quick)
    buckets.report(quick=quick)
    turns.report(quick=quick)
    search.report(quick=quick)
