"""The tokens of both tiers (G3): valid, wide enough and no wider, and what their owner is in each project.

The one that writes is asked about through the forge, the one that reads through the data source: they never meet.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial

from hummingbird.adapters.forge.self_check import HookSeen, SelfCheck
from hummingbird.adapters.sources.gitlab.self_check import sees_project, token_of
from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.assembly.doctor.finding import Check, Findings, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.config.needed import EVERY_PROJECT, Need, projects
from hummingbird.config.needed import writing as writers
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE, orchestrator_variables, token_variable
from hummingbird.domain.errors import CredentialRefused, ForgeMissing
from hummingbird.domain.limits import DOCTOR_EXPIRY_DAYS
from hummingbird.domain.token_facts import READING_SCOPES, WRITING_SCOPE, TokenFacts
from hummingbird.ports.forge import DEVELOPER, OrchestratorToken
from hummingbird.ports.source import ToolToken

REPORTER, MAINTAINER = 20, 40
_ROLES = {10: "Guest", 15: "Planner", 20: "Reporter", 25: "Security Manager", 30: "Developer", 40: "Maintainer"}
_EVENTS = {
    "pipeline_events": "Pipeline events",
    "merge_requests_events": "Merge request events",
    "note_events": "Comments",
    "confidential_note_events": "Confidential comments",
}


def writing_checks(patient: Patient) -> Iterator[Check]:
    """One a token, then one a project."""
    used = [need.used(patient.environment) for need in writers(patient.configuration)]
    for variable in filter(None, dict.fromkeys([*used, *own_tokens(patient)])):
        yield Check("token that writes", partial(_writer, patient, variable))
    for project in projects(patient.configuration):
        variable = Need(orchestrator_variables(project), "").used(patient.environment)
        if variable:
            yield Check(project, partial(_role, patient, project, variable))


def own_tokens(patient: Patient) -> list[str]:
    """The variables of single projects that are set, whether or not the file names the project."""
    prefix = f"{ORCHESTRATOR_VARIABLE}_"
    return sorted(name for name in patient.environment if name.startswith(prefix) and patient.value(name))


async def _writer(patient: Patient, variable: str) -> Findings:
    async with SelfCheck(patient.settings.gitlab_url, patient.settings.ca_bundle) as gitlab:
        try:
            facts = await gitlab.token(OrchestratorToken(patient.value(variable)))
        except CredentialRefused as error:
            raise CredentialRefused(f"{variable}: {error}") from error
    if WRITING_SCOPE not in facts.scopes:
        yield Standing.FAIL, f"{variable} cannot write: give it the scope {WRITING_SCOPE}."
    else:
        yield Standing.OK, f"{variable} is valid and has the scope {WRITING_SCOPE}."
    if ending := _ending(variable, facts):
        yield Standing.WARN, ending


async def _role(patient: Patient, project: str, variable: str) -> Findings:
    token = OrchestratorToken(patient.value(variable))
    async with SelfCheck(patient.settings.gitlab_url, patient.settings.ca_bundle) as gitlab:
        try:
            facts = await gitlab.token(token)
            level = await gitlab.role(token, project, facts.user_id)
        except CredentialRefused:
            yield Standing.SKIP, f"Not tried: {variable} must be mended first."
            return
        except ForgeMissing:
            yield Standing.FAIL, f"{variable} does not see it: correct the path, or make its user a member."
            return
        yield _level(level, variable, internal=_internal(patient, project))
        hooks = await gitlab.hooks(token, project)
    if hooks is not None and not patient.settings.sqs_queue_url:
        yield _hooked(hooks)


def _internal(patient: Patient, project: str) -> bool:
    return any(applied.internal_notes for applied in patient.configuration.on(project))


def _level(level: int, variable: str, *, internal: bool) -> tuple[Standing, str]:
    name = _ROLES.get(level, "Owner" if level >= MAINTAINER else f"level {level}")
    if not level:
        return Standing.FAIL, f"The user of {variable} is no member: add it as Developer."
    if level < REPORTER:
        why = "cannot write internal notes" if internal else "sees too little"
        return Standing.FAIL, f"The user of {variable} is {name}, who {why}: make it Developer."
    if level < DEVELOPER:
        return Standing.WARN, f"The user of {variable} is {name}, who resolves no threads of others: make it Developer."
    if level >= MAINTAINER:
        return Standing.WARN, f"The user of {variable} is {name}, more than it needs: make it Developer."
    return Standing.OK, f"The user of {variable} is {name}."


def _hooked(hooks: tuple[HookSeen, ...]) -> tuple[Standing, str]:
    """Of several webhooks, the one that knows most of our events is taken for ours."""
    wanted = _EVENTS.keys()
    best = max(hooks, key=lambda hook: len(hook.events & wanted), default=None)
    if best is None or not best.events & wanted:
        return Standing.WARN, f"No webhook of the project sends {_told(wanted)}: add one, unless its group has it."
    if missing := [event for event in _EVENTS if event not in best.events]:
        return Standing.WARN, f"Its webhook does not send {_told(missing)}: switch that on, unless its group does."
    if best.resting:
        return Standing.WARN, "GitLab has switched its webhook off after failures: see its deliveries, and test it."
    return Standing.OK, "Its webhook sends every kind of event that is needed."


def _told(events: Iterable[str]) -> str:
    return ", ".join(_EVENTS[event] for event in events)


def reading_checks(patient: Patient) -> Iterator[Check]:
    """Each pair of a variable and a project once; without a project, only the token."""
    seen: dict[tuple[str, str], None] = {}
    for workflow in patient.configuration.workflows.values():
        for path, entry in workflow.projects.items():
            if workflow.data_sources.gitlab is not None:
                variable, _ = token_variable(entry, workflow, "gitlab")
                others = workflow.data_sources.gitlab.projects
                seen.update(((variable, one if one != EVERY_PROJECT else ""), None) for one in (path, *others))
    for variable in dict.fromkeys(variable for variable, _ in seen):
        if patient.value(variable):
            yield Check("token that reads", partial(_reader, patient, variable))
    for variable, project in seen:
        if project and (not variable or patient.value(variable)):
            yield Check(project, partial(_sight, patient, project, variable))


async def _reader(patient: Patient, variable: str) -> Findings:
    if patient.value(variable) in _orchestrators(patient):
        yield Standing.FAIL, f"{variable} holds the token that writes: make another one that only reads (read_api)."
        return
    try:
        facts = await token_of(_source(patient, "", variable))
    except CredentialRefused as error:
        raise CredentialRefused(f"{variable} is invalid, expired or revoked: make a new token (read_api).") from error
    if not facts.scopes & READING_SCOPES:
        yield Standing.FAIL, f"{variable} cannot read: give it the scope read_api."
    elif facts.beyond_reading:
        wide = ", ".join(sorted(facts.beyond_reading))
        yield Standing.WARN, f"{variable} can do more than read ({wide}): make one with the scope read_api alone."
    else:
        yield Standing.OK, f"{variable} is valid, and only reads."
    if ending := _ending(variable, facts):
        yield Standing.WARN, ending


async def _sight(patient: Patient, project: str, variable: str) -> Findings:
    try:
        seen = await sees_project(_source(patient, project, variable))
    except CredentialRefused:
        yield Standing.SKIP, f"Not read: {variable or 'the token'} must be mended first."
        return
    if seen:
        yield Standing.OK, f"Can be read {f'with {variable}' if variable else 'without a token'}."
    elif variable:
        yield Standing.FAIL, f"{variable} does not see it: correct the path, or make its user a Reporter."
    else:
        yield Standing.FAIL, "Is not public, and there is no token to read it with: name one in gitlab.token_env."


def _source(patient: Patient, project: str, variable: str) -> GitLabSettings:
    token = ToolToken(patient.value(variable)) if variable else None
    return GitLabSettings(patient.settings.gitlab_url, token, project, ca_bundle=patient.settings.ca_bundle)


def _orchestrators(patient: Patient) -> set[str]:
    return {patient.value(name) for name in (ORCHESTRATOR_VARIABLE, *own_tokens(patient))} - {""}


def _ending(variable: str, facts: TokenFacts) -> str:
    if facts.expires is None:
        return ""
    days = (facts.expires - datetime.now(UTC).date()).days
    return f"{variable} ends on {facts.expires}: renew it." if days <= DOCTOR_EXPIRY_DAYS else ""
