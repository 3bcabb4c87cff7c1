"""What a run gives back."""

from decimal import Decimal

import pytest

from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import EndReason
from hummingbird.core.usage import Bill, TokenUsage


@pytest.mark.parametrize("reason", EndReason)
@pytest.mark.parametrize("answered", [True, False])
def test_the_exit_code_tells_success_failure_and_interruption_apart(reason: EndReason, answered: bool) -> None:
    """An answer is a success also when a budget made it the last word."""
    bill = Bill(0, 0, TokenUsage(), Decimal(0), 0)
    outcome = RunOutcome("s", "r", reason, "text", answered, "", (), 0, bill)
    expected = 130 if reason is EndReason.INTERRUPTED else 0 if answered else 1
    assert outcome.exit_code == expected


def test_a_run_ends_with_one_of_the_reasons_there_are() -> None:
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
