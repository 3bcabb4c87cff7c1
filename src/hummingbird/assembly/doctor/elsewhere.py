"""What workflows and conversations read from besides GitLab: Konflux with its KubeArchive, Testing Farm, MCP servers.
Only what the configuration names, each as it is used."""

from collections.abc import Iterator
from functools import partial

from hummingbird.adapters.mcp.servers import McpServers
from hummingbird.adapters.sources.konflux.self_check import refusals
from hummingbird.adapters.sources.testing_farm.self_check import check_answers
from hummingbird.assembly.declaring import konflux_of, testing_farm_of
from hummingbird.assembly.doctor.finding import Check, Findings, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.assembly.secrets import all_secrets, for_runs
from hummingbird.assembly.tool_servers import server_settings
from hummingbird.config.tokens import variable_value
from hummingbird.config.workflows import KonfluxDeclared, TestingFarmDeclared
from hummingbird.domain.errors import SourceDown


def elsewhere_checks(patient: Patient) -> Iterator[Check]:
    """The same server is asked once, however many workflows read from it."""
    declared = [workflow.data_sources for workflow in patient.configuration.workflows.values()]
    konflux = [one.konflux for one in declared if one.konflux is not None]
    farms = [one.testing_farm for one in declared if one.testing_farm is not None]
    for one in [wanted for at, wanted in enumerate(konflux) if wanted not in konflux[:at]]:
        yield Check("konflux", partial(_konflux, patient, one))
    for farm in [wanted for at, wanted in enumerate(farms) if wanted not in farms[:at]]:
        yield Check("testing farm", partial(_testing_farm, patient, farm))
    for name in patient.configuration.chat.mcp_servers:
        yield Check(f"mcp server {name}", partial(_mcp, patient, name))


async def _konflux(patient: Patient, wanted: KonfluxDeclared) -> Findings:
    given, _ = for_runs(patient.environment)
    settings = konflux_of(patient.settings, wanted, given)
    for name, refusal in (await refusals(settings, given)).items():
        title = name[:1].upper() + name[1:]
        if refusal:
            yield Standing.FAIL, f"{title} cannot be read: {refusal}"
        else:
            yield Standing.OK, f"{title} can be read."
    if not wanted.kubearchive_url:
        yield Standing.WARN, "No kubearchive_url is set: what the cluster has pruned cannot be read. Set it."


async def _testing_farm(patient: Patient, wanted: TestingFarmDeclared) -> Findings:
    token = variable_value(wanted.token_env, "testing_farm", patient.environment)
    settings = testing_farm_of(patient.settings, wanted, token)
    try:
        await check_answers(settings)
    except SourceDown as error:  # runs go on without it, and say so
        yield Standing.WARN, f"{error} If no test runs there, take testing_farm out of the workflow."
        return
    yield Standing.OK, f"{settings.api_url} answers{', and takes the token' if token else ''}."


async def _mcp(patient: Patient, name: str) -> Findings:
    """Begun as for a conversation, asked for its tools, and ended."""
    given, _ = for_runs(patient.environment)
    mask = all_secrets(patient.configuration, patient.environment).mask
    settings = server_settings(patient.configuration, given, name)
    servers = McpServers([settings], given, mask=mask, ca_bundle=patient.settings.ca_bundle)
    try:
        await servers.open()
        count, trouble = len(servers.tools), servers.trouble
    finally:
        await servers.close()
    for sentence in trouble:
        yield Standing.WARN if count else Standing.FAIL, sentence
    if count:
        yield Standing.OK, f"It offers {count} of the tools that `tools` names."
    elif not trouble:
        yield Standing.FAIL, f"It offers none of the tools that chat.mcp_servers.{name}.tools names: correct them."
