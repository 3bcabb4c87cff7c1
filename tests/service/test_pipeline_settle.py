"""An order waits until nothing of the head changes any more, and never longer than the cap."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.limits import SETTLE_LOOK_CAP_S, SETTLE_LOOK_S
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.gitlab.write.protocol import CommitCheck
from hummingbird.service.pipeline_settle import (
    PENDING,
    SHORTEST_S,
    SettledChecks,
    SettleWait,
    check_settled,
    has_recovered,
    is_green,
)

NOW = 1_800_000_000.0
OVER = ["success", "failed", "canceled", "skipped", "manual", "scheduled"]


def order(made_at: float = NOW) -> WorkOrder:
    return WorkOrder(
        id="o",
        session_id="s",
        cause=OrderCause.PIPELINE,
        workflow="w",
        project="acme/widgets",
        mr_iid=7,
        made_at=made_at,
    )


def check(status: str = "failed", *, ago: float | None = 0.0, name: str = "unit", allow: bool = False) -> CommitCheck:
    changed_at = 0.0 if ago is None else NOW - ago
    return CommitCheck(name=name, status=status, changed_at=changed_at, allow_failure=allow)


def waiting(found: SettledChecks | SettleWait) -> SettleWait:
    assert isinstance(found, SettleWait)
    return found


@pytest.mark.parametrize("status", OVER)
def test_what_ended_long_enough_ago_is_settled_at_once(status: str) -> None:
    checks = [check(status, ago=60), check(ago=500, name="lint")]
    assert check_settled(checks, order(), NOW, 60, 7200) == SettledChecks("nothing runs any more")


@pytest.mark.parametrize("status", sorted(PENDING))
def test_while_something_runs_the_order_waits_however_old_it_is(status: str) -> None:
    found = waiting(check_settled([check(ago=9_000), check(status, ago=9_000, name="e2e")], order(), NOW, 60, 7200))
    assert found.reason == "still running: 'e2e'"
    assert found.seconds == 60


@pytest.mark.parametrize(("settle_s", "seconds"), [(0, SETTLE_LOOK_S), (30, 30), (600, SETTLE_LOOK_CAP_S)])
def test_what_runs_is_looked_at_neither_too_often_nor_too_rarely(settle_s: float, seconds: float) -> None:
    assert waiting(check_settled([check("running")], order(), NOW, settle_s, 7200)).seconds == seconds


def test_a_recent_end_is_waited_for_just_as_long_as_it_needs() -> None:
    found = waiting(check_settled([check(ago=45), check(ago=300, name="lint")], order(), NOW, 60, 7200))
    assert (found.seconds, found.reason) == (15, "the last change is too recent")
    assert check_settled([check(ago=60)], found.create_successor(order()), NOW + 15, 60, 7200) == SettledChecks(
        "nothing runs any more"
    )


def test_the_cap_ends_the_waiting_and_says_what_did_not_end() -> None:
    checks = [check("running", name="slow\n"), *(check("pending", name=f"job {number}") for number in range(9))]
    assert isinstance(check_settled(checks, order(NOW - 7199), NOW, 60, 7200), SettleWait)
    found = check_settled(checks, order(NOW - 7200), NOW, 60, 7200)
    names = "'slow', 'job 0', 'job 1', 'job 2', 'job 3' and 5 more"
    assert found == SettledChecks(f"waited long enough, though {names} did not end")
    assert check_settled([check(ago=1)], order(NOW - 7200), NOW, 60, 7200) == SettledChecks("waited long enough")


def test_nobody_waits_beyond_the_cap() -> None:
    assert waiting(check_settled([check("running")], order(NOW - 7180), NOW, 60, 7200)).seconds == 20
    assert waiting(check_settled([check()], order(NOW - 7190), NOW, 60, 7200)).seconds == 10
    assert waiting(check_settled([check()], order(NOW - 7199.9), NOW, 60, 7200)).seconds == SHORTEST_S


@pytest.mark.parametrize("ago", [-3_600.0, -1e9, None])
def test_a_clock_ahead_of_ours_or_none_at_all_is_outwaited_by_watching(ago: float | None) -> None:
    first = waiting(check_settled([check(ago=ago)], order(), NOW, 60, 7200))
    assert (first.seconds, first.watched_since) == (60, NOW)
    second = waiting(check_settled([check(ago=ago)], first.create_successor(order()), NOW + 59, 60, 7200))
    assert (second.seconds, second.watched_since) == (1, NOW)
    assert isinstance(
        check_settled([check(ago=ago)], second.create_successor(order()), NOW + 60, 60, 7200), SettledChecks
    )


def test_one_check_whose_change_is_not_told_makes_us_watch() -> None:
    assert isinstance(
        check_settled([check(ago=500), check(ago=None, name="external")], order(), NOW, 60, 7200), SettleWait
    )


def test_a_commit_without_checks_is_watched_too() -> None:
    first = waiting(check_settled([], order(), NOW, 60, 7200))
    assert isinstance(check_settled([], first.create_successor(order()), NOW + 60, 60, 7200), SettledChecks)


@pytest.mark.parametrize(
    "later",
    [
        [check("success", ago=None)],
        [check(ago=-5_000)],
        [check(ago=None, name="other")],
        [check(ago=None), check(ago=None, name="more")],
        [replace(check(ago=None), pipeline_id=4)],
        [],
    ],
)
def test_any_change_begins_the_watching_anew(later: list[CommitCheck]) -> None:
    first = waiting(check_settled([check(ago=None)], order(), NOW, 60, 7200)).create_successor(order())
    found = waiting(check_settled(later, first, NOW + 100, 60, 7200))
    assert (found.watched_since, found.seconds) == (NOW + 100, 60)
    assert found.watched != first.watched


def test_the_order_in_which_checks_are_listed_is_no_change() -> None:
    checks = [check(ago=None), check(ago=None, name="lint")]
    first = waiting(check_settled(checks, order(), NOW, 60, 7200)).create_successor(order())
    assert isinstance(check_settled(checks[::-1], first, NOW + 60, 60, 7200), SettledChecks)


def test_a_successor_remembers_and_counts() -> None:
    before = order(NOW - 5)
    found = waiting(check_settled([check("running")], before, NOW, 60, 7200))
    after = found.create_successor(before)
    assert (after.waits, after.made_at, after.watched, after.watched_since) == (1, NOW - 5, found.watched, NOW)
    assert (after.id, after.session_id, after.workflow) == ("o", "s", "w")


def test_an_order_of_a_host_whose_clock_is_ahead_is_capped_from_our_first_look() -> None:
    first = waiting(check_settled([check("running")], order(NOW + 1e6), NOW, 60, 7200))
    assert first.made_at == NOW
    assert isinstance(
        check_settled([check("running")], first.create_successor(order()), NOW + 7200, 60, 7200), SettledChecks
    )


def test_what_a_host_whose_clock_is_ahead_has_watched_is_watched_from_our_first_look() -> None:
    ahead = waiting(check_settled([check(ago=None)], order(), NOW + 5_000, 60, 7200)).create_successor(order())
    found = waiting(check_settled([check(ago=None)], ahead, NOW, 60, 7200))
    assert (found.watched_since, found.seconds) == (NOW, 60)


def test_no_settling_means_no_waiting_for_what_is_over() -> None:
    for ago in (0.0, -500.0, None):
        assert isinstance(check_settled([check(ago=ago)], order(), NOW, 0, 7200), SettledChecks)
    assert isinstance(check_settled([check("running")], order(), NOW, 60, 0), SettledChecks)


@given(
    st.lists(
        st.tuples(st.sampled_from([*OVER, *sorted(PENDING), "odd"]), st.floats(-1e5, 1e5) | st.none()), max_size=4
    ),
    st.floats(-1e5, 1e5),
    st.floats(0, 600),
    st.floats(0, 9_000),
    st.floats(-50, 50),
)
def test_whatever_the_clocks_say_it_ends_in_time_and_without_haste(
    seen: list[tuple[str, float | None]], made: float, settle_s: float, cap_s: float, drift: float
) -> None:
    checks = [check(status, ago=ago, name=str(at)) for at, (status, ago) in enumerate(seen)]
    current, now, looks = order(NOW + made), NOW, 0
    while isinstance(found := check_settled(checks, current, now, settle_s, cap_s), SettleWait):
        assert SHORTEST_S <= found.seconds <= max(SHORTEST_S, SETTLE_LOOK_CAP_S, settle_s)
        current, now, looks = (
            found.create_successor(current),
            now + found.seconds + (drift if looks == 0 else 0),
            looks + 1,
        )
        assert looks <= cap_s / SETTLE_LOOK_S + 60
    assert now <= NOW + cap_s + SHORTEST_S + 50


@pytest.mark.parametrize(
    ("checks", "well"),
    [
        ([check("success")], True),
        ([check("success"), check("failed", name="lint", allow=True)], True),
        ([check("success"), check("failed", name="lint")], False),
        ([check("running"), check("success", name="lint")], True),
        ([check("canceled")], True),
        ([], False),
    ],
)
def test_recovered_is_when_nothing_that_matters_is_failed_any_more(checks: list[CommitCheck], well: bool) -> None:
    assert has_recovered(checks) is well


@pytest.mark.parametrize(
    ("checks", "well"),
    [
        ([check("success"), check("skipped", name="a"), check("manual", name="b"), check("scheduled", name="c")], True),
        ([check("success"), check("failed", name="lint", allow=True)], True),
        ([check("success"), check("canceled", name="lint", allow=True)], True),
        ([check("success"), check("failed", name="lint")], False),
        ([check("success"), check("canceled", name="lint")], False),
        ([check("success"), check("running", name="lint")], False),
        ([check("success"), check("running", name="lint", allow=True)], False),
        ([], False),
    ],
)
def test_green_is_when_all_is_over_and_nothing_that_matters_went_wrong(checks: list[CommitCheck], well: bool) -> None:
    assert is_green(checks) is well
