"""A token that reads is never taken to write, whatever it is called and however much one that writes is missing."""

import pytest

from hummingbird.app.gitlab_write import write_token
from hummingbird.core.errors import MissingSetting

READING = ("GITLAB_TOKEN", "GITLAB_READ_TOKEN", "TOOL_GITLAB_TOKEN", "READER", "CI_JOB_TOKEN", "TESTING_FARM_TOKEN")


@pytest.mark.parametrize("writing", ["", " \n"])
def test_without_a_token_that_writes_none_that_reads_takes_its_place(writing: str) -> None:
    environment = {**dict.fromkeys(READING, "glpat-only-reads"), "ORCHESTRATOR_GITLAB_TOKEN": writing}
    with pytest.raises(MissingSetting, match="no token that writes to acme/widgets") as raised:
        write_token("acme/widgets", environment)
    assert "only-reads" not in str(raised.value)


def test_beside_any_number_of_tokens_that_read_the_one_that_writes_is_taken() -> None:
    environment = {**dict.fromkeys(READING, "glpat-only-reads"), "ORCHESTRATOR_GITLAB_TOKEN": "glpat-writes"}
    assert write_token("acme/widgets", environment).reveal() == "glpat-writes"
