"""How the bounds of what happens on the host relate to each other and to the rest."""

from hummingbird.core import limits
from hummingbird.core.shell import values as host_limits
from hummingbird.core.shell.values import (
    BACKGROUND_GLANCE_S,
    BACKGROUND_KEPT_BYTES,
    BACKGROUND_RUNNING,
    COMMAND_BYTES,
    COMMAND_KEPT_BYTES,
    COMMAND_SLACK_S,
    COMMAND_TIMEOUT_CAP_S,
    COMMAND_TIMEOUT_S,
    EDIT_BYTES,
    ENDING_S,
    LEFT_RUNNING_S,
    PROCESS_READ_BYTES,
    READ_BYTES,
    SEARCH_ANSWER_BYTES,
    SEARCH_GIT_S,
    SEARCH_LINE_CHARS,
    SEARCH_MATCHES,
    SEARCH_MATCHES_PER_FILE,
    SEARCH_S,
    TERM_GRACE_S,
    UNDO_BYTES,
)


def test_every_limit_of_the_host_is_more_than_nothing() -> None:
    values = {
        name: value for name, value in vars(host_limits).items() if name.isupper() and isinstance(value, int | float)
    }
    assert values
    assert all(value > 0 for value in values.values())


def test_a_command_has_180_seconds_and_its_call_outlives_the_longest_one() -> None:
    assert COMMAND_TIMEOUT_S == 180
    assert COMMAND_TIMEOUT_S <= COMMAND_TIMEOUT_CAP_S
    assert COMMAND_SLACK_S > 2 * ENDING_S + LEFT_RUNNING_S


def test_what_is_asked_to_end_is_killed_well_within_a_fifth_of_a_second() -> None:
    assert TERM_GRACE_S <= 0.1
    assert BACKGROUND_GLANCE_S < limits.INTERRUPT_GRACE_S
    assert ENDING_S <= limits.INTERRUPT_GRACE_S


def test_a_command_that_is_taken_fits_into_one_argument_of_linux() -> None:
    assert COMMAND_BYTES < 128 * 1024


def test_all_output_together_stays_small() -> None:
    assert BACKGROUND_RUNNING * 2 * BACKGROUND_KEPT_BYTES < 32 * 1024 * 1024
    assert PROCESS_READ_BYTES <= BACKGROUND_KEPT_BYTES // 2
    assert COMMAND_KEPT_BYTES >= limits.INLINE_RESULT_BYTES


def test_a_search_asks_git_within_its_time_and_fits_its_answer() -> None:
    assert SEARCH_GIT_S < SEARCH_S
    assert SEARCH_MATCHES_PER_FILE < SEARCH_MATCHES
    assert SEARCH_MATCHES * SEARCH_LINE_CHARS < SEARCH_ANSWER_BYTES


def test_every_file_that_can_be_edited_can_be_read_and_taken_back() -> None:
    assert EDIT_BYTES <= READ_BYTES
    assert EDIT_BYTES * 2 <= UNDO_BYTES
