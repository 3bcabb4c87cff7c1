"""What a run gives back (L12)."""

from decimal import Decimal

import pytest

from hummingbird.domain.journal import EndReason
from hummingbird.domain.runs import Outcome
from hummingbird.domain.usage import Bill, Usage


@pytest.mark.parametrize("reason", EndReason)
@pytest.mark.parametrize("answered", [True, False])
def test_the_exit_code_tells_success_failure_and_interruption_apart(reason: EndReason, answered: bool) -> None:
    """L12. An answer is a success also when a budget made it the last word."""
    bill = Bill(0, 0, Usage(), Decimal(0), 0)
    outcome = Outcome("s", "r", reason, "text", answered, "", (), 0, bill)
    expected = 130 if reason is EndReason.INTERRUPTED else 0 if answered else 1
    assert outcome.exit_code == expected


def test_a_run_ends_with_one_of_the_reasons_there_are() -> None:
    """L12."""
    assert [reason.value for reason in EndReason] == [
        "completed",
        "max_iterations",
        "context_limit",
        "cost_limit",
        "time_limit",
        "model_error",
        "empty_responses",
        "no_progress",
        "refused",
        "interrupted",
        "unexpected_error",
    ]
