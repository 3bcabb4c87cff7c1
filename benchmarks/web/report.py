"""The section of the dashboard: a long page, many who load it, then many who look at what runs."""

from benchmarks.web import paint, readers, viewers


def report(*, quick: bool) -> None:
    paint.report(paint.QUICK if quick else paint.FULL)
    readers.report(readers.QUICK if quick else readers.FULL)
    viewers.report(viewers.QUICK if quick else viewers.FULL)
