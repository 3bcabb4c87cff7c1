"""How the bounds of the GitLab source relate to each other and to those around them."""

from hummingbird.core import limits


def test_a_tool_outlasts_the_pauses_between_its_tries() -> None:
    assert limits.SOURCE_WAIT_S < limits.GITLAB_LIST_S


def test_reading_ends_before_its_tool_would_be_given_up_with_all_that_came() -> None:
    assert limits.GITLAB_LIST_S < limits.TOOL_TIMEOUT_S < limits.GITLAB_STREAM_S < limits.GITLAB_STREAM_TOOL_S


def test_what_is_held_of_a_body_is_little() -> None:
    """500 MB of log may add 16 MB of memory."""
    assert limits.TERMINAL_SEQUENCE_BYTES < limits.HTTP_WORTHWHILE_BYTES <= limits.HTTP_PIECE_BYTES <= 1024**2


def test_an_archive_fits_into_a_file_of_the_sandbox() -> None:
    assert limits.GITLAB_ARCHIVE_BYTES <= limits.SANDBOX_FILE_BYTES <= limits.GITLAB_TEXT_BYTES


def test_pages_are_no_larger_than_gitlab_gives() -> None:
    assert max(limits.GITLAB_DIFFS_PER_PAGE, limits.GITLAB_RECENT) <= limits.GITLAB_PER_PAGE == 100
    assert limits.GITLAB_BASELINE_PIPELINES < limits.GITLAB_REQUESTS
