"""How the bounds of this source relate to each other and to what servers do."""

from hummingbird.core import limits


def test_a_page_is_no_larger_than_kubearchive_gives() -> None:
    """Facts 4: 1000 at most, or 400."""
    assert limits.KONFLUX_PAGE <= 1000


def test_a_page_holds_its_items_and_an_item_what_is_gathered_for_it() -> None:
    etcd_bytes = 1536 * 1024
    assert limits.KONFLUX_PAGE * etcd_bytes <= limits.KONFLUX_PAGE_BYTES
    assert etcd_bytes <= limits.KONFLUX_OBJECT_BYTES <= limits.KONFLUX_ITEM_CHARS
    assert limits.HTTP_PIECE_BYTES <= limits.KONFLUX_GATHERED_CHARS <= limits.KONFLUX_ITEM_CHARS


def test_a_credential_program_is_given_up_before_the_request_that_waits_for_it() -> None:
    assert min(limits.API_TIMEOUT_S, limits.SOURCE_HEADERS_S) > limits.CREDENTIAL_PROGRAM_S


def test_a_call_outlasts_all_pauses_of_a_read_on_each_server() -> None:
    assert 2 * limits.SOURCE_WAIT_S < limits.KONFLUX_LIST_S < limits.KONFLUX_LOGS_S
