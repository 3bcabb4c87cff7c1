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


def test_a_process_that_wakes_up_posts_no_second_result() -> None:
    """It stood still between asking for its lease and sending, which were two steps then."""
    assert_ends_well(
        Script(
            seed=117,
            replicas=2,
            merge_requests=3,
            events=(
                ScriptEvent(at=4.7, kind=EventKind.FAIL_PIPELINE, number=1),
                ScriptEvent(
                    at=4.8,
                    kind=EventKind.TROUBLE,
                    replica=1,
                    count=1,
                    seconds=600,
                    service="sandbox",
                    fate=Fate.REFUSED,
                ),
                ScriptEvent(at=7.7, kind=EventKind.PAUSE, replica=1, count=4, seconds=192),
            ),
        )
    )


def test_a_run_that_is_not_stored_ends_when_its_work_is_another_process_s() -> None:
    """A journal in memory did not notice it: the run went on asking the model after a long pause."""
    assert_ends_well(
        Script(
            seed=45,
            replicas=2,
            jitter=False,
            events=(
                ScriptEvent(at=19.2, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(at=87.1, kind=EventKind.TROUBLE, count=1, seconds=600, service="bucket", fate=Fate.BUSY),
                ScriptEvent(
                    at=19.2,
                    kind=EventKind.PAUSE,
                    replica=2,
                    count=3,
                    seconds=176,
                    service="gitlab",
                    within="GET discussions",
                ),
                ScriptEvent(at=107.6, kind=EventKind.PAUSE, replica=1, count=3, seconds=151, service="source"),
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


def test_a_power_cut_right_after_the_first_start_takes_no_session() -> None:
    """The folders of the state were created, but never flushed."""
    assert_ends_well(
        Script(
            seed=2,
            replicas=1,
            files=True,
            answer_s=10.0,
            events=(
                ScriptEvent(at=2.0, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(
                    at=2.0, kind=EventKind.POWER_CUT, count=30, seconds=5, service="disk", within="flush journal"
                ),
            ),
        )
    )


def test_a_power_cut_takes_no_session_whose_creator_has_died() -> None:
    """It died before it had flushed the entry of the session's folder, and nobody else did."""
    assert_ends_well(
        Script(
            seed=2,
            replicas=1,
            files=True,
            answer_s=10.0,
            events=(
                ScriptEvent(at=2.0, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(at=2.0, kind=EventKind.CRASH, seconds=5, service="disk", within="write journal"),
                ScriptEvent(
                    at=110.0, kind=EventKind.POWER_CUT, count=30, seconds=5, service="disk", within="flush journal"
                ),
            ),
        )
    )


def test_two_pushes_at_once_start_no_run_too_many() -> None:
    """Both orders had looked how many runs there were before either had its placeholder."""
    assert_ends_well(
        Script(
            seed=1,
            tight=True,
            events=(
                ScriptEvent(at=2.0, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(at=100.0, kind=EventKind.PUSH),
                ScriptEvent(
                    at=100.0,
                    kind=EventKind.TROUBLE,
                    count=1,
                    seconds=60,
                    service="gitlab",
                    within="POST placeholder",
                    fate=Fate.LATE,
                ),
                ScriptEvent(at=101.0, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(at=103.0, kind=EventKind.PUSH),
                ScriptEvent(at=103.5, kind=EventKind.FAIL_PIPELINE),
            ),
        )
    )


def test_a_run_whose_workflow_is_taken_away_says_so_in_its_placeholder() -> None:
    """The process died behind its placeholder, and its successor knew no such workflow: nothing ever followed."""
    assert_ends_well(
        Script(
            seed=1,
            replicas=1,
            jitter=False,
            events=(
                ScriptEvent(at=2.0, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(at=2.0, kind=EventKind.CRASH, count=1, seconds=60, service="model", within="answer"),
                ScriptEvent(at=30.0, kind=EventKind.DROP_WORKFLOW, seconds=300),
            ),
        )
    )


def test_no_draft_stays_where_the_head_has_moved_on() -> None:
    """Another process finished the review after a push, and left the drafts of the one that stood still."""
    assert_ends_well(
        Script(
            seed=1109,
            jitter=False,
            reviews=True,
            events=(
                ScriptEvent(at=2.0, kind=EventKind.PUSH),
                ScriptEvent(
                    at=2.0,
                    kind=EventKind.TROUBLE,
                    count=5,
                    seconds=600,
                    service="gitlab",
                    within="POST placeholder",
                    fate=Fate.REFUSED,
                ),
                ScriptEvent(
                    at=5.2,
                    kind=EventKind.PAUSE,
                    count=3,
                    seconds=154,
                    service="gitlab",
                    within="POST draft_notes finding",
                ),
                ScriptEvent(at=55.0, kind=EventKind.PUSH),
            ),
        )
    )


def test_a_parked_run_keeps_its_place_before_what_was_sent_meanwhile() -> None:
    """It was sent anew when its process had to end, and so came behind an order that it should have preceded."""
    assert_ends_well(
        Script(
            seed=1,
            replicas=1,
            jitter=False,
            events=(
                ScriptEvent(at=2.0, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(
                    at=2.0,
                    kind=EventKind.TROUBLE,
                    count=1,
                    seconds=60,
                    service="model",
                    within="answer",
                    fate=Fate.SILENT,
                ),
                ScriptEvent(at=30.0, kind=EventKind.FAIL_PIPELINE),
                ScriptEvent(at=50.0, kind=EventKind.STOP, seconds=5),
                ScriptEvent(at=55.0, kind=EventKind.STOP, seconds=5),
            ),
        )
    )


def test_a_process_that_stood_still_while_it_asked_for_the_window_asks_no_model() -> None:
    """It looked at its lease before it asked the server for its window, and not again before it sent the request."""
    assert_ends_well(
        Script(
            seed=3964,
            replicas=2,
            merge_requests=3,
            jitter=False,
            reviews=True,
            events=(
                ScriptEvent(at=7.1, kind=EventKind.PAUSE, replica=1, count=48, seconds=350),
                ScriptEvent(at=11.8, kind=EventKind.PUSH, number=2),
            ),
        )
    )
