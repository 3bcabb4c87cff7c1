"""Checks what runs contact: models, sources, services, and the tokens for GitLab's two tiers.

The write token is checked through the write side and the read token through the data source, so that they never meet.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from uuid import uuid4

from hummingbird.app.console import SystemClock
from hummingbird.app.doctor import CheckOutcomes, CheckStatus, DoctorCheck, DoctorContext
from hummingbird.app.environment_secrets import all_secrets, environment_secrets, split_environment
from hummingbird.app.model_choice import model_chain, price_overrides
from hummingbird.app.source_registry import konflux_settings, mcp_server_settings, testing_farm_settings
from hummingbird.config.configuration import (
    ORCHESTRATOR_VARIABLE,
    orchestrator_variables,
    read_token_variable,
    token_variable,
)
from hummingbird.config.env_requirements import EVERY_PROJECT, EnvRequirement, list_projects
from hummingbird.config.env_requirements import write_token_requirements as writers
from hummingbird.config.settings import KonfluxSourceSettings, TestingFarmSourceSettings
from hummingbird.core.errors import (
    CredentialRefused,
    GitLabNotFound,
    HummingbirdError,
    MissingSetting,
    OperatorError,
    SourceNotFound,
    SourceResponseInvalid,
    SourceUnavailable,
    require_extra,
)
from hummingbird.core.limits import DOCTOR_EXPIRY_DAYS, DOCTOR_OUTPUT_TOKENS, DOCTOR_SKEW_CAP_S, DOCTOR_SKEW_S
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import Model, ModelRequest
from hummingbird.core.protocols.tools import ToolToken
from hummingbird.gitlab.access import READING_SCOPES, WRITING_SCOPE, TokenFacts, parse_token_facts
from hummingbird.gitlab.read import GitLabSettings
from hummingbird.gitlab.read.client import GitLabReader, GitLabSourceClient
from hummingbird.gitlab.write.protocol import DEVELOPER, OrchestratorToken
from hummingbird.gitlab.write.self_check import GitLabSelfCheck, WebhookInfo
from hummingbird.mcp.client import McpServers
from hummingbird.models.model_names import DIGEST
from hummingbird.models.registry import ModelRegistry
from hummingbird.telemetry.delivery import (
    DSN_VARIABLE,
    OtlpEndpoint,
    check_sentry,
    header_secrets,
    otlp_endpoint_from_env,
    trace_export_error,
)
from hummingbird.testing_farm.client import check_api

_KEYS_HINT = "set ANTHROPIC_API_KEY, GOOGLE_API_KEY or OPENAI_API_KEY, or name one in settings.model"


def model_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    """Yield one check per model, however many workflows use it."""
    for name in _models_in_use(context):
        yield DoctorCheck("model", partial(_check_model, context, name))
    others = [name for name in context.settings.models_allowed if name not in _models_in_use(context)]
    if others:
        yield DoctorCheck("model", partial(_check_allowed_models, context, others))


def _models_in_use(context: DoctorContext) -> tuple[str, ...]:
    """Return the models of all workflows, without the `digest` at their end unless it is the only one."""
    settings, found = context.settings, dict[str, None]()
    for workflow in context.configuration.workflows.values():
        model = settings.model if workflow.model is None else workflow.model
        fallbacks = settings.fallback_models if workflow.fallback_models is None else workflow.fallback_models
        names = model_chain(model, fallbacks, context.environment)
        found.update(dict.fromkeys(names[:-1] or names))
    return tuple(found)


async def _check_model(context: DoctorContext, name: str) -> CheckOutcomes:
    if name == DIGEST and not context.settings.model:
        yield CheckStatus.WARN, f"No key of a model is set, so `digest` reads logs by rules alone: {_KEYS_HINT}."
        return
    models = _create_models(context)
    try:
        model = models.resolve(name)
        if not context.try_model or name == DIGEST:
            asked = "" if name == DIGEST else "; --try-model asks it for a word, which costs next to nothing"
            yield CheckStatus.OK, f"{model.name} is configured{asked}."
            return
        await _ask_for_one_word(model)
        yield CheckStatus.OK, f"{model.name} answers."
    except HummingbirdError as error:
        yield CheckStatus.FAIL, f"{name}: {error}"
    finally:
        await models.close()


async def _check_allowed_models(context: DoctorContext, names: list[str]) -> CheckOutcomes:
    """Check the models that people may choose in a command."""
    models = _create_models(context)
    try:
        for name in names:
            try:
                models.resolve(name)
            except OperatorError as error:
                yield CheckStatus.WARN, f"settings.models_allowed has {name}, which nobody can use: {error}"
            else:
                yield CheckStatus.OK, f"{name}, which people may choose, is configured."
    finally:
        await models.close()


def _create_models(context: DoctorContext) -> ModelRegistry:
    settings = context.settings
    return ModelRegistry(
        context.environment,
        now=SystemClock().now,
        model_regions=settings.model_regions,
        price_overrides=price_overrides(settings.prices),
        ca_bundle=settings.ca_bundle or None,
    )


async def _ask_for_one_word(model: Model) -> None:
    """Ask the model for one word.

    Raises ProviderError, CredentialRefused and CreditExhausted.
    """
    request = ModelRequest(
        system="You are asked by a program that checks whether you can be reached.",
        tools=(),
        messages=[UserMessage("Answer with the word: yes")],
        session_id="doctor",
        call_id=uuid4().hex,
        max_output_tokens=DOCTOR_OUTPUT_TOKENS,
    )
    await model.generate(request)


# Sources besides GitLab: Konflux with its KubeArchive, Testing Farm, MCP servers, as far as the configuration names
# them.


def source_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    """Yield one check per server, however many workflows read from it."""
    declared = [workflow.data_sources for workflow in context.configuration.workflows.values()]
    konflux = [one.konflux for one in declared if one.konflux is not None]
    farms = [one.testing_farm for one in declared if one.testing_farm is not None]
    for one in [wanted for at, wanted in enumerate(konflux) if wanted not in konflux[:at]]:
        yield DoctorCheck("konflux", partial(_check_konflux, context, one))
    for farm in [wanted for at, wanted in enumerate(farms) if wanted not in farms[:at]]:
        yield DoctorCheck("testing farm", partial(_check_testing_farm, context, farm))
    for name in context.configuration.chat.mcp_servers:
        yield DoctorCheck(f"mcp server {name}", partial(_check_mcp_server, context, name))


async def _check_konflux(context: DoctorContext, wanted: KonfluxSourceSettings) -> CheckOutcomes:
    given, _ = split_environment(context.environment)
    settings = konflux_settings(context.settings, wanted, given)
    require_extra("lightkube", "kubernetes", "The source konflux")
    from hummingbird.konflux.servers import check_servers  # noqa: PLC0415 - an extra

    for name, refusal in (await check_servers(settings, given)).items():
        title = name[:1].upper() + name[1:]
        if refusal:
            yield CheckStatus.FAIL, f"{title} cannot be read: {refusal}"
        else:
            yield CheckStatus.OK, f"{title} can be read."
    if not wanted.kubearchive_url:
        yield CheckStatus.WARN, "No kubearchive_url is set: what the cluster has pruned cannot be read. Set it."


async def _check_testing_farm(context: DoctorContext, wanted: TestingFarmSourceSettings) -> CheckOutcomes:
    token = read_token_variable(wanted.token_env, "testing_farm", context.environment)
    settings = testing_farm_settings(context.settings, wanted, token)
    try:
        await check_api(settings)
    except SourceUnavailable as error:  # runs go on without it, and say so
        yield CheckStatus.WARN, f"{error} If no test runs there, take testing_farm out of the workflow."
        return
    yield CheckStatus.OK, f"{settings.api_url} answers{', and takes the token' if token else ''}."


async def _check_mcp_server(context: DoctorContext, name: str) -> CheckOutcomes:
    """Start the server as a conversation would, list its tools, and stop it."""
    given, _ = split_environment(context.environment)
    mask = all_secrets(context.configuration, context.environment).mask
    settings = mcp_server_settings(context.configuration, given, name)
    servers = McpServers([settings], given, mask=mask, ca_bundle=context.settings.ca_bundle)
    try:
        await servers.open()
        count, trouble = len(servers.tools), servers.trouble
    finally:
        await servers.close()
    for sentence in trouble:
        yield CheckStatus.WARN if count else CheckStatus.FAIL, sentence
    if count:
        yield CheckStatus.OK, f"It offers {count} of the tools that `tools` names."
    elif not trouble:
        yield CheckStatus.FAIL, f"It offers none of the tools that chat.mcp_servers.{name}.tools names: correct them."


# Traces and error reports, where they are configured.


def telemetry_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    try:
        endpoint = otlp_endpoint_from_env(context.environment, context.settings.ca_bundle)
    except MissingSetting as error:
        sentence = str(error)
        yield DoctorCheck("traces", lambda: _report_failure(sentence))
    else:
        if endpoint is not None:
            yield DoctorCheck("traces", lambda: _check_traces(context, endpoint))
    if context.value(DSN_VARIABLE):
        yield DoctorCheck("sentry", lambda: _check_sentry_dsn(context))


async def _report_failure(sentence: str) -> CheckOutcomes:
    yield CheckStatus.FAIL, sentence


async def _check_traces(context: DoctorContext, endpoint: OtlpEndpoint) -> CheckOutcomes:
    """Send an export without spans, with the code that sends the real ones."""
    secrets = environment_secrets(context.environment, header_secrets(context.environment))
    refusal = await asyncio.to_thread(trace_export_error, endpoint, secrets)
    if refusal:
        yield CheckStatus.FAIL, f"{endpoint.host} takes no traces: correct {endpoint.variable}, or see to it. {refusal}"
    else:
        yield CheckStatus.OK, f"{endpoint.host} takes traces."


async def _check_sentry_dsn(context: DoctorContext) -> CheckOutcomes:
    """Check the DSN only; sending an event would alert somebody."""
    await asyncio.to_thread(check_sentry, context.value(DSN_VARIABLE))
    yield CheckStatus.OK, f"{DSN_VARIABLE} is well-formed; bugs will be reported there."


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


def server_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    yield DoctorCheck("gitlab", lambda: _check_reachable(context))


async def _check_reachable(context: DoctorContext) -> CheckOutcomes:
    url = context.settings.gitlab_url
    async with GitLabSelfCheck(url, context.settings.ca_bundle) as gitlab:
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


def write_token_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    """Yield one check for each write token, then one for each project."""
    used = [need.find_set_variable(context.environment) for need in writers(context.configuration)]
    for variable in filter(None, dict.fromkeys([*used, *project_token_variables(context)])):
        yield DoctorCheck("token that writes", partial(_check_write_token, context, variable))
    for project in list_projects(context.configuration):
        variable = EnvRequirement(orchestrator_variables(project), "").find_set_variable(context.environment)
        if variable:
            yield DoctorCheck(project, partial(_check_role, context, project, variable))


def project_token_variables(context: DoctorContext) -> list[str]:
    """Return the variables that hold a single project's token, whether or not the configuration names the project."""
    prefix = f"{ORCHESTRATOR_VARIABLE}_"
    return sorted(name for name in context.environment if name.startswith(prefix) and context.value(name))


async def _check_write_token(context: DoctorContext, variable: str) -> CheckOutcomes:
    async with GitLabSelfCheck(context.settings.gitlab_url, context.settings.ca_bundle) as gitlab:
        try:
            facts = await gitlab.read_token_facts(OrchestratorToken(context.value(variable)))
        except CredentialRefused as error:
            raise CredentialRefused(f"{variable}: {error}") from error
    if WRITING_SCOPE not in facts.scopes:
        yield CheckStatus.FAIL, f"{variable} cannot write: give it the scope {WRITING_SCOPE}."
    else:
        yield CheckStatus.OK, f"{variable} is valid and has the scope {WRITING_SCOPE}."
    if ending := _expiry_warning(variable, facts):
        yield CheckStatus.WARN, ending


async def _check_role(context: DoctorContext, project: str, variable: str) -> CheckOutcomes:
    token = OrchestratorToken(context.value(variable))
    async with GitLabSelfCheck(context.settings.gitlab_url, context.settings.ca_bundle) as gitlab:
        try:
            facts = await gitlab.read_token_facts(token)
            level = await gitlab.read_role(token, project, facts.user_id)
        except CredentialRefused:
            yield CheckStatus.SKIP, f"Not tried: {variable} must be fixed first."
            return
        except GitLabNotFound:
            yield CheckStatus.FAIL, f"{variable} does not see it: correct the path, or make its user a member."
            return
        yield _judge_role(level, variable, internal=_has_internal_notes(context, project))
        hooks = await gitlab.list_hooks(token, project)
    if hooks is not None and not context.settings.sqs_queue_url:
        yield _judge_webhook(hooks)


def _has_internal_notes(context: DoctorContext, project: str) -> bool:
    return any(applied.internal_notes for applied in context.configuration.resolve_project(project))


def _judge_role(level: int, variable: str, *, internal: bool) -> tuple[CheckStatus, str]:
    name = _ROLE_NAMES.get(level, "Owner" if level >= MAINTAINER else f"level {level}")
    if not level:
        return CheckStatus.FAIL, f"The user of {variable} is not a member: add it as Developer."
    if level < REPORTER:
        why = "cannot write internal notes" if internal else "sees too little"
        return CheckStatus.FAIL, f"The user of {variable} is {name}, who {why}: make it Developer."
    if level < DEVELOPER:
        return (
            CheckStatus.WARN,
            f"The user of {variable} is {name}, who cannot resolve other people's threads: make it Developer.",
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


def read_token_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    """Yield one check for each pair of token variable and project; without a project, check only the token."""
    seen: dict[tuple[str, str], None] = {}
    for workflow in context.configuration.workflows.values():
        for path, entry in workflow.projects.items():
            if workflow.data_sources.gitlab is not None:
                variable, _ = token_variable(entry, workflow, "gitlab")
                others = workflow.data_sources.gitlab.projects
                seen.update(((variable, one if one != EVERY_PROJECT else ""), None) for one in (path, *others))
    for variable in dict.fromkeys(variable for variable, _ in seen):
        if context.value(variable):
            yield DoctorCheck("token that reads", partial(_check_read_token, context, variable))
    for variable, project in seen:
        if project and (not variable or context.value(variable)):
            yield DoctorCheck(project, partial(_check_project_visible, context, project, variable))


async def _check_read_token(context: DoctorContext, variable: str) -> CheckOutcomes:
    if context.value(variable) in _write_token_values(context):
        yield CheckStatus.FAIL, f"{variable} holds the token that writes: make another one that only reads (read_api)."
        return
    try:
        facts = await read_token_facts(_gitlab_source(context, "", variable))
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


async def _check_project_visible(context: DoctorContext, project: str, variable: str) -> CheckOutcomes:
    try:
        seen = await can_see_project(_gitlab_source(context, project, variable))
    except CredentialRefused:
        yield CheckStatus.SKIP, f"Not read: {variable or 'the token'} must be fixed first."
        return
    if seen:
        yield CheckStatus.OK, f"Can be read {f'with {variable}' if variable else 'without a token'}."
    elif variable:
        yield CheckStatus.FAIL, f"{variable} does not see it: correct the path, or make its user a Reporter."
    else:
        yield CheckStatus.FAIL, "Is not public, and there is no token to read it with: name one in gitlab.token_env."


def _gitlab_source(context: DoctorContext, project: str, variable: str) -> GitLabSettings:
    token = ToolToken(context.value(variable)) if variable else None
    return GitLabSettings(context.settings.gitlab_url, token, project, ca_bundle=context.settings.ca_bundle)


def _write_token_values(context: DoctorContext) -> set[str]:
    return {context.value(name) for name in (ORCHESTRATOR_VARIABLE, *project_token_variables(context))} - {""}


def _expiry_warning(variable: str, facts: TokenFacts) -> str:
    if facts.expires is None:
        return ""
    days = (facts.expires - datetime.now(UTC).date()).days
    return f"{variable} ends on {facts.expires}: renew it." if days <= DOCTOR_EXPIRY_DAYS else ""


# Votes: only a figure on the dashboard depends on them, so what does not work is a warning.


EMOJI_EVENT = "emoji_events"


def vote_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    for project in list_projects(context.configuration):
        variable = EnvRequirement(orchestrator_variables(project), "").find_set_variable(context.environment)
        if variable:
            yield DoctorCheck("votes", partial(_check_votes, context, project, variable))


async def _check_votes(context: DoctorContext, project: str, variable: str) -> CheckOutcomes:
    token = OrchestratorToken(context.value(variable))
    async with GitLabSelfCheck(context.settings.gitlab_url, context.settings.ca_bundle) as gitlab:
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
