"""How the bounds of what the agent keeps in mind relate to each other, and to those of results and prompts."""

from hummingbird.agent.context_files.instruction_files import (
    CONTEXT_FILE_BYTES,
    CONTEXT_FILES_BYTES,
    PAPER_BYTES,
    SKILL_BYTES,
    SKILL_FRONT_CHARS,
)
from hummingbird.agent.context_files.memory_pages import MEMORY_ENTRY_CHARS
from hummingbird.agent.todo_list import TODO_CHARS, TODO_CUT_CHARS, TODOS, TODOS_SHOWN_CHARS
from hummingbird.agent.tools.recall import (
    RECALL_AROUND,
    RECALL_AROUND_CAP,
    RECALL_BYTES,
    RECALL_INDEX_S,
    RECALL_PER_SESSION,
    RECALL_SESSIONS,
    RECALL_TEXT_CHARS,
)
from hummingbird.core.limits import INLINE_RESULT_BYTES, MEMORY_CHARS, RESULT_FRAME_BYTES, TOOL_TIMEOUT_S, USER_CHARS
from hummingbird.core.sessions import FRESH_S, SEARCH_HITS, SEARCH_PER_SESSION


def test_an_index_that_is_being_brought_up_to_date_leaves_time_to_search_what_is_there() -> None:
    assert 0 < FRESH_S < RECALL_INDEX_S / 2


def test_the_list_is_as_long_as_was_asked_for_and_fits_into_a_result() -> None:
    assert (TODOS, TODO_CHARS, TODOS_SHOWN_CHARS) == (256, 500, 4_000)
    assert TODO_CUT_CHARS < TODO_CHARS
    assert TODOS_SHOWN_CHARS * 4 <= INLINE_RESULT_BYTES


def test_what_is_recalled_fits_into_a_result_whole_message_included() -> None:
    assert RECALL_BYTES + RESULT_FRAME_BYTES <= INLINE_RESULT_BYTES
    assert RECALL_TEXT_CHARS <= RECALL_BYTES - RESULT_FRAME_BYTES
    assert 3 <= RECALL_SESSIONS <= 5
    assert RECALL_AROUND == 5 < RECALL_AROUND_CAP
    assert RECALL_PER_SESSION <= SEARCH_PER_SESSION
    assert RECALL_SESSIONS < SEARCH_HITS
    assert RECALL_INDEX_S < TOOL_TIMEOUT_S


def test_an_entry_fits_on_both_pages_and_the_pages_into_what_is_read() -> None:
    assert MEMORY_ENTRY_CHARS < USER_CHARS < MEMORY_CHARS < PAPER_BYTES


def test_papers_are_read_further_than_they_are_shown() -> None:
    """So that what is wrong below the cut is seen too."""
    assert (CONTEXT_FILE_BYTES, CONTEXT_FILES_BYTES) == (8 * 1024, 16 * 1024)
    assert CONTEXT_FILE_BYTES < CONTEXT_FILES_BYTES < PAPER_BYTES
    assert SKILL_FRONT_CHARS < SKILL_BYTES == 16 * 1024
