"""Checks the tokens of both tiers: whether they are valid, have the right scopes, and what their owners may do.

The write token is checked through the write side and the read token through the data source, so that they never meet.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from hummingbird.app.doctor.check import CheckOutcomes, CheckStatus, DoctorCheck, DoctorContext
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE, orchestrator_variables, token_variable
from hummingbird.config.env_requirements import EVERY_PROJECT, EnvRequirement, list_projects
from hummingbird.config.env_requirements import write_token_requirements as writers
from hummingbird.core.errors import CredentialRefused, GitLabNotFound, SourceNotFound, SourceResponseInvalid
from hummingbird.core.limits import DOCTOR_EXPIRY_DAYS, DOCTOR_SKEW_CAP_S, DOCTOR_SKEW_S
from hummingbird.core.protocols.tools import ToolToken
from hummingbird.gitlab.access import READING_SCOPES, WRITING_SCOPE, TokenFacts, parse_token_facts
from hummingbird.gitlab.read.client import GitLabReader, GitLabSourceClient
from hummingbird.gitlab.read.settings import GitLabSettings
from hummingbird.gitlab.write.protocol import DEVELOPER, OrchestratorToken
from hummingbird.gitlab.write.self_check import GitLabSelfCheck, WebhookInfo

Answer = TypeVar("Answer")


async def read_token_facts(settings: GitLabSettings) -> TokenFacts:
    """Return what GitLab says about the settings' token. Raises SourceError, CredentialRefused."""
    facts = parse_token_facts(await _ask_gitlab(settings, lambda reader: reader.get("/personal_access_tokens/self")))
    if facts is None:
        raise SourceResponseInvalid("GitLab does not say what the token may do: use a personal or project one.")
    return facts


async def can_see_project(settings: GitLabSettings) -> bool:
    """Return whether the settings' project is visible, with the settings' token or without one.

    Raises SourceError, CredentialRefused.
    """
    try:
        await _ask_gitlab(settings, lambda reader: reader.get_object(settings.project, ""))
    except SourceNotFound:
        return False
    return True


async def _ask_gitlab(settings: GitLabSettings, question: Callable[[GitLabReader], Awaitable[Answer]]) -> Answer:
    async with aclosing(GitLabSourceClient(settings)) as client:
        return await client.fetch("GitLab's answer", question)


# GitLab itself: does it answer, and do its clock and ours agree?


def server_checks(patient: DoctorContext) -> Iterator[DoctorCheck]:
    yield DoctorCheck("gitlab", lambda: _check_reachable(patient))


async def _check_reachable(patient: DoctorContext) -> CheckOutcomes:
    url = patient.settings.gitlab_url
    async with GitLabSelfCheck(url, patient.settings.ca_bundle) as gitlab:
        reached = await gitlab.check_reachable()
    yield CheckStatus.OK, f"{url} answers."
    if reached.server_time is None:
        return
    skew = time.time() - reached.server_time
    direction = "ahead of" if skew > 0 else "behind"
    words = f"This machine's clock is {abs(skew):.0f} seconds {direction} GitLab's"
    if abs(skew) > DOCTOR_SKEW_CAP_S:
        yield CheckStatus.FAIL, f"{words}, so signed webhooks are refused: let NTP set the clocks."
    elif abs(skew) > DOCTOR_SKEW_S:
        yield CheckStatus.WARN, f"{words}: let NTP set the clocks."
    else:
        yield CheckStatus.OK, "Both clocks agree."


REPORTER, MAINTAINER = 20, 40
_ROLE_NAMES = {10: "Guest", 15: "Planner", 20: "Reporter", 25: "Security Manager", 30: "Developer", 40: "Maintainer"}
_EVENT_NAMES = {
    "pipeline_events": "Pipeline events",
    "merge_requests_events": "Merge request events",
    "note_events": "Comments",
    "confidential_note_events": "Confidential comments",
}


def write_token_checks(patient: DoctorContext) -> Iterator[DoctorCheck]:
    """Yield one check for each write token, then one for each project."""
    used = [need.find_set_variable(patient.environment) for need in writers(patient.configuration)]
    for variable in filter(None, dict.fromkeys([*used, *project_token_variables(patient)])):
        yield DoctorCheck("token that writes", partial(_check_write_token, patient, variable))
    for project in list_projects(patient.configuration):
        variable = EnvRequirement(orchestrator_variables(project), "").find_set_variable(patient.environment)
        if variable:
            yield DoctorCheck(project, partial(_check_role, patient, project, variable))


def project_token_variables(patient: DoctorContext) -> list[str]:
    """Return the variables with tokens of single projects that are set, whether or not the file names the project."""
    prefix = f"{ORCHESTRATOR_VARIABLE}_"
    return sorted(name for name in patient.environment if name.startswith(prefix) and patient.value(name))


async def _check_write_token(patient: DoctorContext, variable: str) -> CheckOutcomes:
    async with GitLabSelfCheck(patient.settings.gitlab_url, patient.settings.ca_bundle) as gitlab:
        try:
            facts = await gitlab.read_token_facts(OrchestratorToken(patient.value(variable)))
        except CredentialRefused as error:
            raise CredentialRefused(f"{variable}: {error}") from error
    if WRITING_SCOPE not in facts.scopes:
        yield CheckStatus.FAIL, f"{variable} cannot write: give it the scope {WRITING_SCOPE}."
    else:
        yield CheckStatus.OK, f"{variable} is valid and has the scope {WRITING_SCOPE}."
    if ending := _expiry_warning(variable, facts):
        yield CheckStatus.WARN, ending


async def _check_role(patient: DoctorContext, project: str, variable: str) -> CheckOutcomes:
    token = OrchestratorToken(patient.value(variable))
    async with GitLabSelfCheck(patient.settings.gitlab_url, patient.settings.ca_bundle) as gitlab:
        try:
            facts = await gitlab.read_token_facts(token)
            level = await gitlab.read_role(token, project, facts.user_id)
        except CredentialRefused:
            yield CheckStatus.SKIP, f"Not tried: {variable} must be fixed first."
            return
        except GitLabNotFound:
            yield CheckStatus.FAIL, f"{variable} does not see it: correct the path, or make its user a member."
            return
        yield _judge_role(level, variable, internal=_has_internal_notes(patient, project))
        hooks = await gitlab.list_hooks(token, project)
    if hooks is not None and not patient.settings.sqs_queue_url:
        yield _judge_webhook(hooks)


def _has_internal_notes(patient: DoctorContext, project: str) -> bool:
    return any(applied.internal_notes for applied in patient.configuration.resolve_project(project))


def _judge_role(level: int, variable: str, *, internal: bool) -> tuple[CheckStatus, str]:
    name = _ROLE_NAMES.get(level, "Owner" if level >= MAINTAINER else f"level {level}")
    if not level:
        return CheckStatus.FAIL, f"The user of {variable} is no member: add it as Developer."
    if level < REPORTER:
        why = "cannot write internal notes" if internal else "sees too little"
        return CheckStatus.FAIL, f"The user of {variable} is {name}, who {why}: make it Developer."
    if level < DEVELOPER:
        return (
            CheckStatus.WARN,
            f"The user of {variable} is {name}, who resolves no threads of others: make it Developer.",
        )
    if level >= MAINTAINER:
        return CheckStatus.WARN, f"The user of {variable} is {name}, more than it needs: make it Developer."
    return CheckStatus.OK, f"The user of {variable} is {name}."


def _judge_webhook(hooks: tuple[WebhookInfo, ...]) -> tuple[CheckStatus, str]:
    """Judge the project's webhook; of several, take the one that sends most of the events we need."""
    wanted = _EVENT_NAMES.keys()
    best = max(hooks, key=lambda hook: len(hook.events & wanted), default=None)
    if best is None or not best.events & wanted:
        return (
            CheckStatus.WARN,
            f"No webhook of the project sends {_join_event_names(wanted)}: add one, unless its group has it.",
        )
    if missing := [event for event in _EVENT_NAMES if event not in best.events]:
        return (
            CheckStatus.WARN,
            f"Its webhook does not send {_join_event_names(missing)}: switch that on, unless its group does.",
        )
    if best.is_disabled:
        return CheckStatus.WARN, "GitLab has switched its webhook off after failures: see its deliveries, and test it."
    return CheckStatus.OK, "Its webhook sends every kind of event that is needed."


def _join_event_names(events: Iterable[str]) -> str:
    return ", ".join(_EVENT_NAMES[event] for event in events)


def read_token_checks(patient: DoctorContext) -> Iterator[DoctorCheck]:
    """Yield one check for each pair of token variable and project; without a project, check only the token."""
    seen: dict[tuple[str, str], None] = {}
    for workflow in patient.configuration.workflows.values():
        for path, entry in workflow.projects.items():
            if workflow.data_sources.gitlab is not None:
                variable, _ = token_variable(entry, workflow, "gitlab")
                others = workflow.data_sources.gitlab.projects
                seen.update(((variable, one if one != EVERY_PROJECT else ""), None) for one in (path, *others))
    for variable in dict.fromkeys(variable for variable, _ in seen):
        if patient.value(variable):
            yield DoctorCheck("token that reads", partial(_check_read_token, patient, variable))
    for variable, project in seen:
        if project and (not variable or patient.value(variable)):
            yield DoctorCheck(project, partial(_check_project_visible, patient, project, variable))


async def _check_read_token(patient: DoctorContext, variable: str) -> CheckOutcomes:
    if patient.value(variable) in _write_token_values(patient):
        yield CheckStatus.FAIL, f"{variable} holds the token that writes: make another one that only reads (read_api)."
        return
    try:
        facts = await read_token_facts(_gitlab_source(patient, "", variable))
    except CredentialRefused as error:
        raise CredentialRefused(f"{variable} is invalid, expired or revoked: make a new token (read_api).") from error
    if not facts.scopes & READING_SCOPES:
        yield CheckStatus.FAIL, f"{variable} cannot read: give it the scope read_api."
    elif facts.write_scopes:
        wide = ", ".join(sorted(facts.write_scopes))
        yield CheckStatus.WARN, f"{variable} can do more than read ({wide}): make one with the scope read_api alone."
    else:
        yield CheckStatus.OK, f"{variable} is valid, and only reads."
    if ending := _expiry_warning(variable, facts):
        yield CheckStatus.WARN, ending


async def _check_project_visible(patient: DoctorContext, project: str, variable: str) -> CheckOutcomes:
    try:
        seen = await can_see_project(_gitlab_source(patient, project, variable))
    except CredentialRefused:
        yield CheckStatus.SKIP, f"Not read: {variable or 'the token'} must be fixed first."
        return
    if seen:
        yield CheckStatus.OK, f"Can be read {f'with {variable}' if variable else 'without a token'}."
    elif variable:
        yield CheckStatus.FAIL, f"{variable} does not see it: correct the path, or make its user a Reporter."
    else:
        yield CheckStatus.FAIL, "Is not public, and there is no token to read it with: name one in gitlab.token_env."


def _gitlab_source(patient: DoctorContext, project: str, variable: str) -> GitLabSettings:
    token = ToolToken(patient.value(variable)) if variable else None
    return GitLabSettings(patient.settings.gitlab_url, token, project, ca_bundle=patient.settings.ca_bundle)


def _write_token_values(patient: DoctorContext) -> set[str]:
    return {patient.value(name) for name in (ORCHESTRATOR_VARIABLE, *project_token_variables(patient))} - {""}


def _expiry_warning(variable: str, facts: TokenFacts) -> str:
    if facts.expires is None:
        return ""
    days = (facts.expires - datetime.now(UTC).date()).days
    return f"{variable} ends on {facts.expires}: renew it." if days <= DOCTOR_EXPIRY_DAYS else ""


# Votes: only a figure on the dashboard depends on them, so what does not work is a warning.


EMOJI_EVENT = "emoji_events"


def vote_checks(patient: DoctorContext) -> Iterator[DoctorCheck]:
    for project in list_projects(patient.configuration):
        variable = EnvRequirement(orchestrator_variables(project), "").find_set_variable(patient.environment)
        if variable:
            yield DoctorCheck("votes", partial(_check_votes, patient, project, variable))


async def _check_votes(patient: DoctorContext, project: str, variable: str) -> CheckOutcomes:
    token = OrchestratorToken(patient.value(variable))
    async with GitLabSelfCheck(patient.settings.gitlab_url, patient.settings.ca_bundle) as gitlab:
        try:
            tried = await gitlab.can_read_reactions(token, project)
        except (CredentialRefused, GitLabNotFound):
            yield CheckStatus.WARN, f"Reactions on notes of {project} cannot be read with {variable}: fix it first."
            return
        hooks = await gitlab.list_hooks(token, project)
    if not tried:
        yield CheckStatus.SKIP, f"Not tried: {project} has no merge request yet that could have reactions."
    elif any(EMOJI_EVENT in hook.events for hook in hooks or ()):
        yield CheckStatus.OK, f"Reactions on notes of {project} can be read, and its webhook tells of them at once."
    else:
        yield CheckStatus.OK, f"Reactions on notes of {project} can be read."
