"""What the forge says failed, beside what a run looked at (N6): a job that no tool has listed was not looked at."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from hummingbird.domain.errors import ForgeError
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.evidence.citations.coverage import Coverage
from hummingbird.ports.forge import Check, Forge
from hummingbird.service.investigating import Conducted

_FAILED = "failed"
_JOB = "/-/jobs/"


async def with_checks(conducted: Conducted, order: WorkOrder, forge: Forge) -> Conducted:
    """Of an order about a pipeline. A forge that does not answer now is no reason to tell nothing."""
    if order.cause is not Cause.PIPELINE or not order.sha:
        return conducted
    with suppress(ForgeError):
        checks = await forge.checks(order.sha, order.pipeline_id)
        return replace(conducted, coverage=_beside(conducted.coverage, checks))
    return conducted


def _beside(coverage: Coverage, checks: Sequence[Check]) -> Coverage:
    """What ran elsewhere counts only where nothing elsewhere was looked at: who knows which of it that was."""
    told = {*coverage.logs, *coverage.unread}
    failed = [one for one in checks if one.status == _FAILED and not one.allow_failure and one.name not in told]
    more = dict.fromkeys(one.name for one in failed if _JOB in one.url or not coverage.elsewhere)
    return replace(coverage, unread=(*coverage.unread, *more))
