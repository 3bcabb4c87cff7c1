"""Checks the configuration, its prompts and the variables that it needs, without contacting anybody."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hummingbird.app.doctor.check import CheckFinding, CheckOutcomes, CheckStatus, DoctorCheck, DoctorContext
from hummingbird.app.doctor.gitlab_checks import project_token_variables
from hummingbird.app.http_server import is_loopback
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE, Configuration
from hummingbird.config.env_requirements import (
    SECRET_VARIABLE,
    SIGNING_VARIABLE,
    EnvRequirement,
    read_token_requirements,
    webhook_requirements,
    write_token_requirements,
)
from hummingbird.config.faults import ConfigFault
from hummingbird.config.loader import EMBEDDED_NAME, examine_config
from hummingbird.core.errors import MissingSetting
from hummingbird.dashboard.access import TOKEN_VARIABLE, DashboardAccess
from hummingbird.service.webhook_auth import create_webhook_auth

CONFIGURATION, PROMPTS, VARIABLES, WEBHOOK = "configuration", "prompts", "variables", "webhook secret"
DASHBOARD = "dashboard"
_SECRET_CHARS = 16


def check_config(path: Path | None, environment: Mapping[str, str]) -> tuple[Configuration | None, list[CheckFinding]]:
    """Return the configuration if it is valid, and findings about it and its prompts.

    Whether the variables that a file names are set is a separate check. Without a file, the environment says which
    GitLab is meant, and tokens are sent to no other.
    """
    found = examine_config(path, environment if path is None else None)
    if found.configuration is None:  # then nobody gets to that check
        found = examine_config(path, environment)
    prompts = [fault for fault in found.faults if _is_prompt_fault(fault)]
    others = [fault for fault in found.faults if not _is_prompt_fault(fault)]
    findings = [*_fault_findings(CONFIGURATION, found.name, others), *_fault_findings(PROMPTS, found.name, prompts)]
    if found.configuration is not None:
        count = len(found.configuration.workflows)
        findings.append(_workflow_finding(found.name, count))
        findings.append(CheckFinding(PROMPTS, CheckStatus.OK, "Every workflow has its prompt."))
    return found.configuration, findings


def _workflow_finding(name: str, count: int) -> CheckFinding:
    if count:
        how_many = "one workflow" if count == 1 else f"{count} workflows"
        stands = "The embedded defaults are" if name == EMBEDDED_NAME else f"{name} is"
        return CheckFinding(CONFIGURATION, CheckStatus.OK, f"{stands} sound, with {how_many}.")
    sentence = f"{name} has no workflow, so nothing will ever run: add one, or begin with `hummingbird init`."
    return CheckFinding(CONFIGURATION, CheckStatus.WARN, sentence)


def _is_prompt_fault(fault: ConfigFault) -> bool:
    return fault.path[:1] == ("workflows",) and fault.path[2:] == ("prompt",)


def _fault_findings(part: str, name: str, faults: Sequence[ConfigFault]) -> Iterator[CheckFinding]:
    for fault in sorted(faults, key=lambda one: one.position):
        yield CheckFinding(part, CheckStatus.FAIL, f"Fix {name}, {fault}")


def environment_checks(patient: DoctorContext) -> Iterator[DoctorCheck]:
    yield DoctorCheck(VARIABLES, lambda: _check_variables(patient))
    yield DoctorCheck(WEBHOOK, lambda: _check_webhook_secret(patient))
    yield DoctorCheck(DASHBOARD, lambda: _check_dashboard(patient))


async def _check_variables(patient: DoctorContext) -> CheckOutcomes:
    needed = [*write_token_requirements(patient.configuration), *read_token_requirements(patient.configuration)]
    missing: dict[str, list[EnvRequirement]] = {}
    for need in needed:
        if not need.find_set_variable(patient.environment):
            missing.setdefault(need.default_variable, []).append(need)
    for variable, needs in missing.items():
        purposes = ", ".join(dict.fromkeys(need.purpose for need in needs))
        only_others = all(need.variables == (ORCHESTRATOR_VARIABLE,) for need in needs) and project_token_variables(
            patient
        )
        yield CheckStatus.WARN if only_others else CheckStatus.FAIL, f"Set {variable}: it {purposes}."
    if not missing:
        names = sorted({need.find_set_variable(patient.environment) for need in needed})
        yield CheckStatus.OK, f"All that are needed are set: {', '.join(names)}." if names else "None is needed."


async def _check_webhook_secret(patient: DoctorContext) -> CheckOutcomes:
    secret, signing = patient.value(SECRET_VARIABLE), patient.value(SIGNING_VARIABLE)
    if not (secret or signing or [*webhook_requirements(patient.configuration)]):
        yield CheckStatus.SKIP, "Not needed, and none is set: events come from a queue."
        return
    try:
        auth = create_webhook_auth(time.time, secret, signing)
    except MissingSetting as error:
        yield CheckStatus.FAIL, f"{SIGNING_VARIABLE} cannot be used: {error}"
        return
    if auth.is_open:
        yield (
            CheckStatus.FAIL,
            f"Set {SECRET_VARIABLE} to a long random text, and the webhook's secret token in GitLab to the same: "
            "without it anybody could send events.",
        )
    elif not auth.requires_signature and len(secret) < _SECRET_CHARS:
        yield CheckStatus.WARN, f"{SECRET_VARIABLE} is short: use {_SECRET_CHARS} random characters or more."
    else:
        names = " and ".join(name for name in (SECRET_VARIABLE, SIGNING_VARIABLE) if patient.value(name))
        yield CheckStatus.OK, f"Deliveries are checked with {names}; GitLab's webhook must have the same."


async def _check_dashboard(patient: DoctorContext) -> CheckOutcomes:
    token = patient.value(TOKEN_VARIABLE)
    if not token and not is_loopback(patient.host):
        yield CheckStatus.WARN, f"Closed on {patient.host}: set {TOKEN_VARIABLE} to open it."
        return
    if not token and patient.value("KUBERNETES_SERVICE_HOST"):
        yield CheckStatus.WARN, f"Open to this pod only: set {TOKEN_VARIABLE} to open it."
        return
    if not token:
        yield (
            CheckStatus.OK,
            f"Open to this machine only; to open it to others, or behind a proxy, set {TOKEN_VARIABLE}.",
        )
        return
    try:
        DashboardAccess(token, local=False, now=time.time)
    except MissingSetting as error:
        yield CheckStatus.FAIL, str(error)
        return
    yield CheckStatus.OK, f"Anybody with {TOKEN_VARIABLE} can see it."
