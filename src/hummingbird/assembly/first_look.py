"""The look at what failed before a run begins (N8): with the read token of the workflow's GitLab source alone.

An order whose journal has a verdict is not looked at again, whoever goes on with it.
"""

from collections.abc import Mapping, Sequence

from hummingbird.adapters.sources.registry import sources
from hummingbird.agent.looking.gathering import Subject, gathered
from hummingbird.agent.looking.reading import Reads
from hummingbird.assembly.declaring import declared
from hummingbird.assembly.secrets import secrets_of
from hummingbird.config.configuration import Applied
from hummingbird.config.settings import Settings
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.journal import Entry, Judged, RunStarted
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.domain.verdicts import Verdict
from hummingbird.service.investigating import NOT_LOOKED, Looked

_BEGINS = (Cause.PIPELINE, Cause.COMMAND)


def is_worth_a_look(order: WorkOrder, applied: Applied) -> bool:
    """A review is about code, not about what failed; a reply goes on with what was seen."""
    workflow = applied.declared
    about_code = workflow.inline_findings or applied.trigger == "merge_request"
    return order.cause in _BEGINS and not about_code and workflow.data_sources.gitlab is not None


def judged_in(entries: Sequence[Entry], run_id: str) -> Verdict | None:
    found = (one.verdict for one in entries if isinstance(one, Judged) and one.run_id == run_id)
    return next(found, None)


def has_begun(entries: Sequence[Entry], run_id: str) -> bool:
    return any(isinstance(one, RunStarted) and one.run_id == run_id for one in entries)


async def first_look(
    order: WorkOrder,
    settings: Settings,
    applied: Applied,
    target_branch: str,
    environment: Mapping[str, str],
    *,
    bot_ids: frozenset[int],
    secrets: Sequence[str],
) -> Looked:
    """All sources are made, for a log may hold what only another one knows to be secret; making one asks nobody.
    Whoever conducts the order says what is wrong with its settings."""
    try:
        found = sources(declared(settings, applied, environment, bot_ids), environment)
    except HummingbirdError:
        return NOT_LOOKED
    try:
        known = (value for source in found for value in source.secrets)
        masked = secrets_of(environment, [*secrets, *known])
        tools = [tool for source in found if source.name == "gitlab" for tool in source.tools]
        subject = Subject(
            mr_iid=order.mr_iid, sha=order.sha, pipeline_id=order.pipeline_id, target_branch=target_branch
        )
        seen = await gathered(Reads(tools, masked, order.session_id), subject)
    finally:
        for source in found:
            await source.close()
    return Looked(facts=seen.facts, failures=seen.failures)
