"""A run's outcome as the library's users get it (C2)."""

from typing import Any

from hummingbird.domain.messages import Notice, as_chat
from hummingbird.domain.runs import Outcome


def as_result(outcome: Outcome) -> dict[str, Any]:
    """C2's dictionary. Calls, usage and cost are the session's so far, so that they belong together (L15). Notices are
    scaffolding and are left out of `messages` (L8). `undelivered` came too late for an interrupted run."""
    bill = outcome.bill
    return {
        "final_response": outcome.text,
        "messages": [as_chat(message) for message in outcome.messages if not isinstance(message, Notice)],
        "api_calls": bill.answered,
        "completed": outcome.answered,
        "exit_reason": outcome.reason.value,
        "usage": {
            "input_tokens": bill.usage.context,
            "fresh_tokens": bill.usage.fresh,
            "cache_read_tokens": bill.usage.cache_read,
            "cache_write_tokens": bill.usage.cache_write,
            "output_tokens": bill.usage.output,
            "reasoning_tokens": bill.usage.reasoning,
        },
        "cost": None if bill.cost_usd is None else float(bill.cost_usd),
        "session_id": outcome.session_id,
        "undelivered": list(outcome.undelivered),
    }
