"""The section of the dashboard: a long page, then many who look."""

from benchmarks.web import paint, viewers


def report(*, quick: bool) -> None:
    paint.report(paint.QUICK if quick else paint.FULL)
    viewers.report(viewers.QUICK if quick else viewers.FULL)
