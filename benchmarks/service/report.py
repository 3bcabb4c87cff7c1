"""The section of the service: the door, then a burst."""

from benchmarks.service import burst, webhook


def report(*, quick: bool) -> None:
    webhook.report(quick=quick)
    burst.report(burst.QUICK if quick else burst.FULL)
