"""Scripts of faults that the simulation found, shortened, each with what was wrong. All end well now."""

from tests.simulation.network import Fate
from tests.simulation.script import EventKind, Script, ScriptEvent
from tests.simulation.simulation import play


def assert_ends_well(script: Script) -> None:
    played = play(script)
    assert not played.violations, f"{script.table()}\n{played.violations}"
    assert played.notes, "nothing happened"


def test_a_process_that_wakes_up_posts_no_second_placeholder() -> None:
    """It had looked for the note before it stood still, and another process posted it meanwhile."""
    assert_ends_well(
        Script(
            seed=98,
            replicas=2,
            merge_requests=3,
            jitter=False,
            events=(
                ScriptEvent(at=2.6, kind=EventKind.FAIL_PIPELINE, number=2),
                ScriptEvent(
                    at=2.6,
                    kind=EventKind.TROUBLE,
                    count=5,
                    seconds=600,
                    service="gitlab",
                    within="POST",
                    fate=Fate.REFUSED,
                ),
                ScriptEvent(at=4.0, kind=EventKind.PAUSE, replica=1, count=5, seconds=244, service="gitlab"),
            ),
        )
    )


def test_waiting_for_a_pipeline_to_settle_keeps_the_order_of_a_group() -> None:
    """The first of two orders was sent anew, behind the second, because a poll had given only one of them."""
    assert_ends_well(
        Script(
            seed=98,
            replicas=1,
            settle_s=30,
            short_polls=0.3,
            jitter=False,
            events=(
                ScriptEvent(at=22.5, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(at=36.4, kind=EventKind.FAIL_PIPELINE),
            ),
        )
    )


def test_a_result_that_waits_for_gitlab_needs_no_store() -> None:
    """While GitLab was too busy for the result, the bucket went away, and the whole run was paid for once more."""
    assert_ends_well(
        Script(
            seed=1386,
            replicas=1,
            jitter=False,
            events=(
                ScriptEvent(
                    at=1.9,
                    kind=EventKind.TROUBLE,
                    replica=1,
                    count=10,
                    seconds=600,
                    service="gitlab",
                    within="POST result",
                    fate=Fate.BUSY,
                ),
                ScriptEvent(at=4.7, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(
                    at=110.0,
                    kind=EventKind.TROUBLE,
                    count=10000,
                    seconds=300,
                    service="bucket",
                    fate=Fate.SILENT_DONE,
                ),
            ),
        )
    )
