"""How the bounds of a look and of what is said of it relate to each other and to the rest."""

from hummingbird.core import limits
from hummingbird.core.limits import (
    FORGE_PIPELINES_LOOKED_AT,
    GITLAB_PER_PAGE,
    GITLAB_STREAM_S,
    GITLAB_TEXT_BYTES,
    KNOWN_FIELD_CHARS,
    LOG_LINE_BYTES,
    NOTE_CHARS,
    NOTE_QUOTED_CHARS,
    PARKING_S,
    SERVE_GRACE_S,
)
from hummingbird.evidence import bounds
from hummingbird.evidence.bounds import (
    KNOWN_ANALYSIS_S,
    LOOK_FINGERPRINTS,
    LOOK_JOBS,
    LOOK_LIST_BYTES,
    LOOK_LOG_BYTES,
    LOOK_LOGS,
    LOOK_S,
    LOOK_TARGET_LISTED,
    LOOK_TARGET_PIPELINES,
    LOOK_TEXT_CHARS,
    VERDICT_JOBS_TOLD,
    VERDICT_NAME_CHARS,
    VERDICT_REASONS_TOLD,
    VERDICT_UNSEEN_TOLD,
)


def test_every_limit_of_a_look_is_more_than_nothing() -> None:
    values = {name: value for name, value in vars(bounds).items() if name.isupper() and isinstance(value, int | float)}
    assert values
    assert all(value > 0 for value in values.values())


def test_a_look_ends_before_the_service_that_is_stopped_does() -> None:
    assert PARKING_S < LOOK_S < SERVE_GRACE_S
    assert LOOK_S < GITLAB_STREAM_S, "the look's own end is told, not the tool's"


def test_what_a_tool_may_bring_is_more_than_a_look_takes() -> None:
    assert 500 * 1024**2 < LOOK_LOG_BYTES < GITLAB_TEXT_BYTES
    assert LOOK_LIST_BYTES <= limits.GITLAB_JSON_BYTES
    assert LOOK_TARGET_PIPELINES < LOOK_TARGET_LISTED <= min(GITLAB_PER_PAGE, FORGE_PIPELINES_LOOKED_AT)
    assert LOOK_LOGS <= LOOK_JOBS


def test_the_lines_of_a_failure_have_room_for_several_that_are_long() -> None:
    assert LOOK_TEXT_CHARS > LOOK_FINGERPRINTS * LOG_LINE_BYTES


def test_a_verdict_is_a_small_part_of_a_note() -> None:
    reasons = VERDICT_JOBS_TOLD * VERDICT_REASONS_TOLD * (KNOWN_FIELD_CHARS + 2 * VERDICT_NAME_CHARS)
    assert reasons + VERDICT_UNSEEN_TOLD * NOTE_QUOTED_CHARS < NOTE_CHARS / 20


def test_an_analysis_stands_for_others_for_days_and_not_for_months() -> None:
    assert 7 * 86_400 <= KNOWN_ANALYSIS_S <= 30 * 86_400
