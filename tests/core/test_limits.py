"""How the bounds relate to each other, and that they are the ones required."""

from itertools import pairwise

from hummingbird.config.configuration import limit_inline_bytes
from hummingbird.core import limits, sessions
from hummingbird.core.limits import (
    BYTES_PER_TOKEN,
    CHAT_ITERATIONS,
    CONCURRENT_TOOLS,
    CONNECT_TIMEOUT_S,
    CONTINUATIONS,
    EMPTY_NUDGES,
    ERROR_TEXT_CHARS,
    FINAL_ATTEMPTS,
    INLINE_RESULT_BYTES,
    INTERRUPT_GRACE_S,
    LONGEST_CYCLE,
    MALFORMED_NUDGES,
    MAX_OUTPUT_TOKENS,
    PRIMARY_COOL_DOWN_S,
    REPEAT_WINDOW,
    REPEATS_FATAL,
    REPEATS_NOTICED,
    REPLY_BYTES,
    RETRY_AFTER_CAP_S,
    RETRY_DELAY_CAP_S,
    RETRY_DELAYS_S,
    RETRY_JITTER,
    SOFT_SHARE,
    STALL_TIMEOUT_S,
    STRIKES,
    SUBAGENT_ITERATIONS,
    TOKEN_MARGIN_S,
    TOOL_TIMEOUT_S,
    WORKFLOW_CONTEXT_TOKENS,
    WORKFLOW_ITERATIONS,
)
from hummingbird.evidence.bounds import LOOK_FINGERPRINTS
from hummingbird.service import diff_comparison


def test_every_limit_is_more_than_nothing() -> None:
    for name, value in (*vars(limits).items(), *vars(sessions).items(), *vars(diff_comparison).items()):
        numbers = value if isinstance(value, tuple) else (value,)
        if name.isupper() and all(isinstance(number, int | float) for number in numbers):
            assert all(number > 0 for number in numbers), name


def test_a_chat_may_take_more_turns_than_a_sub_agent_and_that_more_than_a_workflow() -> None:
    assert (WORKFLOW_ITERATIONS, SUBAGENT_ITERATIONS, CHAT_ITERATIONS) == (30, 50, 90)
    assert WORKFLOW_ITERATIONS < SUBAGENT_ITERATIONS < CHAT_ITERATIONS


def test_the_soft_notice_comes_while_there_are_turns_left_to_use_it() -> None:
    assert 0 < SOFT_SHARE < 1
    assert WORKFLOW_ITERATIONS * (1 - SOFT_SHARE) > FINAL_ATTEMPTS


def test_a_second_final_attempt_exists_for_disabling_tools() -> None:
    assert FINAL_ATTEMPTS == 2


def test_patience_is_as_required() -> None:
    assert (EMPTY_NUDGES, MALFORMED_NUDGES, CONTINUATIONS, STRIKES) == (2, 2, 3, 3)


def test_nothing_that_goes_wrong_on_its_own_can_use_up_a_workflow() -> None:
    """Each has its own end before the turns are gone."""
    assert max(EMPTY_NUDGES, MALFORMED_NUDGES, CONTINUATIONS, STRIKES) < WORKFLOW_ITERATIONS


def test_repeating_is_noticed_before_it_ends_the_run() -> None:
    assert (REPEATS_NOTICED, REPEATS_FATAL) == (3, 5)
    assert 1 < REPEATS_NOTICED < REPEATS_FATAL <= REPEAT_WINDOW


def test_the_longest_cycle_is_found_before_the_turns_of_a_workflow_are_used_up() -> None:
    assert LONGEST_CYCLE >= 2
    assert LONGEST_CYCLE * REPEATS_FATAL < WORKFLOW_ITERATIONS


def test_waiting_grows_and_stays_within_its_cap_whatever_the_jitter() -> None:
    assert RETRY_DELAYS_S == (5.0, 10.0, 20.0, 40.0)
    assert all(one < other for one, other in pairwise(RETRY_DELAYS_S))
    assert 0 < RETRY_JITTER < 1
    assert RETRY_DELAYS_S[-1] * (1 + RETRY_JITTER) <= RETRY_DELAY_CAP_S <= RETRY_AFTER_CAP_S
    assert (RETRY_DELAY_CAP_S, RETRY_AFTER_CAP_S) == (60.0, 600.0)


def test_a_connection_is_given_up_long_before_a_silent_stream() -> None:
    assert CONNECT_TIMEOUT_S < STALL_TIMEOUT_S == 120.0


def test_the_primary_rests_at_least_as_long_as_a_retry_waits() -> None:
    assert RETRY_DELAY_CAP_S <= PRIMARY_COOL_DOWN_S == 60.0


def test_an_interrupt_returns_long_before_a_tool_would() -> None:
    assert INTERRUPT_GRACE_S < TOOL_TIMEOUT_S
    assert CONCURRENT_TOOLS == 8


def test_one_result_never_fills_the_context_of_a_workflow() -> None:
    """Even with the longest answer after it; a larger inline size is cut to the context."""
    result_tokens = INLINE_RESULT_BYTES / BYTES_PER_TOKEN
    assert result_tokens + MAX_OUTPUT_TOKENS < WORKFLOW_CONTEXT_TOKENS * SOFT_SHARE
    assert limit_inline_bytes(10**9, WORKFLOW_CONTEXT_TOKENS) / BYTES_PER_TOKEN <= WORKFLOW_CONTEXT_TOKENS * SOFT_SHARE


def test_a_reply_holds_the_longest_answer_many_times_over() -> None:
    """The cap is against a provider gone mad, not against an answer."""
    assert ERROR_TEXT_CHARS < INLINE_RESULT_BYTES < REPLY_BYTES
    assert MAX_OUTPUT_TOKENS * BYTES_PER_TOKEN * 100 < REPLY_BYTES


def test_a_token_is_renewed_only_when_its_server_has_a_new_one() -> None:
    """Google's hands out the same one until four minutes before its end."""
    assert TOKEN_MARGIN_S < 4 * 60


def test_a_failing_message_has_a_pause_before_every_further_try() -> None:
    assert len(limits.WORK_PAUSES_S) == limits.QUEUE_RECEIVES - 1
    assert list(limits.WORK_PAUSES_S) == sorted(limits.WORK_PAUSES_S)


def test_no_wait_is_longer_than_a_queue_holds_a_message() -> None:
    assert (
        max(limits.LATER_CAP_S, *limits.WORK_PAUSES_S, *limits.WORK_AWAY_S, limits.SLOT_PAUSE_S) < limits.QUEUE_HELD_S
    )
    assert list(limits.WORK_AWAY_S) == sorted(limits.WORK_AWAY_S)
    assert sum(limits.WORK_AWAY_S) >= 3600, "GitLab may be away for an hour"


def test_a_signature_is_no_longer_good_than_a_replay_is_remembered() -> None:
    assert limits.SIGNATURE_AGE_S <= limits.QUEUE_DEDUP_S
    assert limits.EVENTS_HELD_BYTES >= 2 * limits.EVENT_BYTES > limits.QUEUE_BODY_BYTES


def test_all_findings_together_fit_into_the_note_that_lists_them() -> None:
    one = limits.FINDING_CHARS + limits.SUGGESTION_CHARS + limits.FINDING_PATH_CHARS
    assert limits.FINDINGS * one < limits.NOTE_CHARS


def test_one_output_does_not_fill_what_a_run_remembers_of_failures() -> None:
    assert 2 * LOOK_FINGERPRINTS <= limits.FAILURES_SEEN


def test_a_session_stays_whose_it_is_while_its_holder_lives() -> None:
    """Two signs of life may be lost, and one commit may take as long as it can."""
    assert sessions.LEASE_BEAT_S * 3 <= sessions.LEASE_S
    assert sessions.COMMIT_S < sessions.LEASE_S


def test_an_order_of_a_host_that_died_finds_the_session_free_when_it_comes_again() -> None:
    assert sessions.LEASE_S <= limits.QUEUE_TAKEN_S


def test_what_hosts_share_keeps_no_run_waiting_and_is_asked_for_again_in_time() -> None:
    """What others had spent is known for longer than nobody asks for it."""
    assert sessions.SHARED_PAUSE_S < sessions.SHARED_PAUSE_CAP_S < sessions.SHARED_S
    assert sessions.SHARED_S < sessions.SHARED_REST_S < sessions.SPENDING_FRESH_S
    assert sessions.SHARED_S <= sessions.COMMIT_S


def test_what_hosts_share_fits_into_its_objects() -> None:
    line_bytes = 64
    assert sessions.SPENDERS * line_bytes + 6 * limits.KNOWN_NAME_CHARS < sessions.SPENDING_BYTES
    assert limits.KNOWN_PLACES < limits.KNOWN_TRACES
    assert limits.KNOWN_SHARDS + 1 <= sessions.SHARED_HELD, "all that one run touches"


def test_parts_of_a_session_are_smaller_than_the_whole() -> None:
    assert sessions.SEGMENT_BYTES < sessions.JOURNAL_BYTES
    assert sessions.CONTEXT_BYTES <= sessions.JOURNAL_BYTES


def test_what_is_around_a_line_is_within_what_is_walked_and_a_patch_within_what_gitlab_shows() -> None:
    assert diff_comparison.MOVE_MARGIN <= diff_comparison.MOVE_AROUND_LINES <= diff_comparison.MOVE_WALK_LINES
    assert diff_comparison.PATCH_FILES <= limits.FORGE_DIFFS_PER_PAGE * limits.FORGE_PAGES
    assert diff_comparison.REVIEW_LINKS <= limits.FINDINGS
