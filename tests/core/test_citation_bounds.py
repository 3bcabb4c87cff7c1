"""How the bounds of the check of citations relate to each other and to others."""

from hummingbird.core import limits
from hummingbird.dashboard import queries
from hummingbird.evidence import bounds as cited


def test_what_a_model_can_say_in_one_answer_is_checked() -> None:
    assert cited.CITED_CHARS >= limits.MAX_OUTPUT_TOKENS * limits.BYTES_PER_TOKEN
    assert cited.CITED_CHARS < limits.NOTE_CHARS
    assert cited.QUOTED_LINES == queries.QUOTES_LOOKED_FOR


def test_a_cut_line_shows_more_than_the_shortest_line_that_counts() -> None:
    assert cited.LEAST_CHARS < cited.CUT_CHARS < cited.CITED_LINE_CHARS
    assert limits.INLINE_RESULT_BYTES < cited.RECORD_CHARS


def test_the_digests_of_a_run_fit_into_memory() -> None:
    assert cited.DIGESTED_LINES * 8 <= 32 * 1024 * 1024
    assert cited.DIGESTED_LINE_BYTES <= limits.FRAME_BYTES
