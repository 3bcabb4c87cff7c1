"""Checks the models, sources and services that runs contact: whether they are configured and whether they answer."""

import asyncio
from collections.abc import Iterator
from functools import partial
from uuid import uuid4

from hummingbird.app.clock import SystemClock
from hummingbird.app.doctor.check import CheckOutcomes, CheckStatus, DoctorCheck, DoctorContext
from hummingbird.app.environment_secrets import all_secrets, environment_secrets, split_environment
from hummingbird.app.model_choice import model_chain, price_overrides
from hummingbird.app.source_registry import konflux_settings, mcp_server_settings, testing_farm_settings
from hummingbird.config.configuration import read_token_variable
from hummingbird.config.settings import KonfluxSourceSettings, TestingFarmSourceSettings
from hummingbird.core.errors import HummingbirdError, MissingSetting, OperatorError, SourceUnavailable
from hummingbird.core.extras import require_extra
from hummingbird.core.limits import DOCTOR_OUTPUT_TOKENS
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import Model, ModelRequest
from hummingbird.mcp.client import McpServers
from hummingbird.models.model_names import DIGEST
from hummingbird.models.registry import ModelRegistry
from hummingbird.telemetry.delivery import OtlpEndpoint, header_secrets, otlp_endpoint_from_env
from hummingbird.telemetry.registry import DSN_VARIABLE, check_sentry, trace_export_error
from hummingbird.testing_farm.client import check_api

_KEYS_HINT = "set ANTHROPIC_API_KEY, GOOGLE_API_KEY or OPENAI_API_KEY, or name one in settings.model"


def model_checks(patient: DoctorContext) -> Iterator[DoctorCheck]:
    """Yield one check per model, however many workflows use it."""
    for name in _models_in_use(patient):
        yield DoctorCheck("model", partial(_check_model, patient, name))
    others = [name for name in patient.settings.models_allowed if name not in _models_in_use(patient)]
    if others:
        yield DoctorCheck("model", partial(_check_allowed_models, patient, others))


def _models_in_use(patient: DoctorContext) -> tuple[str, ...]:
    """Return the models of all workflows, without the `digest` at their end unless it is the only one."""
    settings, found = patient.settings, dict[str, None]()
    for workflow in patient.configuration.workflows.values():
        model = settings.model if workflow.model is None else workflow.model
        fallbacks = settings.fallback_models if workflow.fallback_models is None else workflow.fallback_models
        names = model_chain(model, fallbacks, patient.environment)
        found.update(dict.fromkeys(names[:-1] or names))
    return tuple(found)


async def _check_model(patient: DoctorContext, name: str) -> CheckOutcomes:
    if name == DIGEST and not patient.settings.model:
        yield CheckStatus.WARN, f"No key of a model is set, so `digest` reads logs by rules alone: {_KEYS_HINT}."
        return
    models = _create_models(patient)
    try:
        model = models.resolve(name)
        if not patient.try_model or name == DIGEST:
            asked = "" if name == DIGEST else "; --try-model asks it for a word, which costs next to nothing"
            yield CheckStatus.OK, f"{model.name} is configured{asked}."
            return
        await _ask_for_one_word(model)
        yield CheckStatus.OK, f"{model.name} answers."
    except HummingbirdError as error:
        yield CheckStatus.FAIL, f"{name}: {error}"
    finally:
        await models.close()


async def _check_allowed_models(patient: DoctorContext, names: list[str]) -> CheckOutcomes:
    """Check the models that people may choose in a command."""
    models = _create_models(patient)
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


def _create_models(patient: DoctorContext) -> ModelRegistry:
    settings = patient.settings
    return ModelRegistry(
        patient.environment,
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


def source_checks(patient: DoctorContext) -> Iterator[DoctorCheck]:
    """Yield one check per server, however many workflows read from it."""
    declared = [workflow.data_sources for workflow in patient.configuration.workflows.values()]
    konflux = [one.konflux for one in declared if one.konflux is not None]
    farms = [one.testing_farm for one in declared if one.testing_farm is not None]
    for one in [wanted for at, wanted in enumerate(konflux) if wanted not in konflux[:at]]:
        yield DoctorCheck("konflux", partial(_check_konflux, patient, one))
    for farm in [wanted for at, wanted in enumerate(farms) if wanted not in farms[:at]]:
        yield DoctorCheck("testing farm", partial(_check_testing_farm, patient, farm))
    for name in patient.configuration.chat.mcp_servers:
        yield DoctorCheck(f"mcp server {name}", partial(_check_mcp_server, patient, name))


async def _check_konflux(patient: DoctorContext, wanted: KonfluxSourceSettings) -> CheckOutcomes:
    given, _ = split_environment(patient.environment)
    settings = konflux_settings(patient.settings, wanted, given)
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


async def _check_testing_farm(patient: DoctorContext, wanted: TestingFarmSourceSettings) -> CheckOutcomes:
    token = read_token_variable(wanted.token_env, "testing_farm", patient.environment)
    settings = testing_farm_settings(patient.settings, wanted, token)
    try:
        await check_api(settings)
    except SourceUnavailable as error:  # runs go on without it, and say so
        yield CheckStatus.WARN, f"{error} If no test runs there, take testing_farm out of the workflow."
        return
    yield CheckStatus.OK, f"{settings.api_url} answers{', and takes the token' if token else ''}."


async def _check_mcp_server(patient: DoctorContext, name: str) -> CheckOutcomes:
    """Start the server as a conversation would, list its tools, and stop it."""
    given, _ = split_environment(patient.environment)
    mask = all_secrets(patient.configuration, patient.environment).mask
    settings = mcp_server_settings(patient.configuration, given, name)
    servers = McpServers([settings], given, mask=mask, ca_bundle=patient.settings.ca_bundle)
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


def telemetry_checks(patient: DoctorContext) -> Iterator[DoctorCheck]:
    try:
        endpoint = otlp_endpoint_from_env(patient.environment, patient.settings.ca_bundle)
    except MissingSetting as error:
        sentence = str(error)
        yield DoctorCheck("traces", lambda: _report_failure(sentence))
    else:
        if endpoint is not None:
            yield DoctorCheck("traces", lambda: _check_traces(patient, endpoint))
    if patient.value(DSN_VARIABLE):
        yield DoctorCheck("sentry", lambda: _check_sentry_dsn(patient))


async def _report_failure(sentence: str) -> CheckOutcomes:
    yield CheckStatus.FAIL, sentence


async def _check_traces(patient: DoctorContext, endpoint: OtlpEndpoint) -> CheckOutcomes:
    """Send an export without spans, with the code that sends the real ones."""
    secrets = environment_secrets(patient.environment, header_secrets(patient.environment))
    refusal = await asyncio.to_thread(trace_export_error, endpoint, secrets)
    if refusal:
        yield CheckStatus.FAIL, f"{endpoint.host} takes no traces: correct {endpoint.variable}, or see to it. {refusal}"
    else:
        yield CheckStatus.OK, f"{endpoint.host} takes traces."


async def _check_sentry_dsn(patient: DoctorContext) -> CheckOutcomes:
    """Check the DSN only; sending an event would alert somebody."""
    await asyncio.to_thread(check_sentry, patient.value(DSN_VARIABLE))
    yield CheckStatus.OK, f"{DSN_VARIABLE} is well-formed; bugs will be reported there."
