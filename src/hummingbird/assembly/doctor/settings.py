"""Configuration, prompts and variables: what can be known without asking anybody."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hummingbird.assembly.doctor.finding import Check, Finding, Findings, Standing
from hummingbird.assembly.doctor.gitlab_tokens import own_tokens
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.assembly.http_door import is_loopback
from hummingbird.config.configuration import Configuration
from hummingbird.config.faults import Fault
from hummingbird.config.load import EMBEDDED, examine
from hummingbird.config.needed import SECRET_VARIABLE, SIGNING_VARIABLE, Need, reading, webhook, writing
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE
from hummingbird.domain.errors import MissingSetting
from hummingbird.service.admission import gate
from hummingbird.web.access import VARIABLE, Access

CONFIGURATION, PROMPTS, VARIABLES, WEBHOOK = "configuration", "prompts", "variables", "webhook secret"
DASHBOARD = "dashboard"
_SECRET_CHARS = 16


def examined(path: Path | None, environment: Mapping[str, str]) -> tuple[Configuration | None, list[Finding]]:
    """The configuration if it is sound, and what is to be said of it and its prompts. Whether the variables that a file
    names are set is a check of its own; without a file the environment says which GitLab is meant, and no other may
    be sent the tokens."""
    found = examine(path, environment if path is None else None)
    if found.configuration is None:  # then nobody gets to that check
        found = examine(path, environment)
    prompts = [fault for fault in found.faults if _of_prompt(fault)]
    others = [fault for fault in found.faults if not _of_prompt(fault)]
    findings = [*_mended(CONFIGURATION, found.name, others), *_mended(PROMPTS, found.name, prompts)]
    if found.configuration is not None:
        count = len(found.configuration.workflows)
        findings.append(_workflows(found.name, count))
        findings.append(Finding(PROMPTS, Standing.OK, "Every workflow has its prompt."))
    return found.configuration, findings


def _workflows(name: str, count: int) -> Finding:
    if count:
        how_many = "one workflow" if count == 1 else f"{count} workflows"
        stands = "The embedded defaults are" if name == EMBEDDED else f"{name} is"
        return Finding(CONFIGURATION, Standing.OK, f"{stands} sound, with {how_many}.")
    sentence = f"{name} has no workflow, so nothing will ever run: add one, or begin with `hummingbird init`."
    return Finding(CONFIGURATION, Standing.WARN, sentence)


def _of_prompt(fault: Fault) -> bool:
    return fault.path[:1] == ("workflows",) and fault.path[2:] == ("prompt",)


def _mended(part: str, name: str, faults: Sequence[Fault]) -> Iterator[Finding]:
    for fault in sorted(faults, key=lambda one: one.place):
        yield Finding(part, Standing.FAIL, f"Mend {name}, {fault}")


def environment_checks(patient: Patient) -> Iterator[Check]:
    yield Check(VARIABLES, lambda: _variables(patient))
    yield Check(WEBHOOK, lambda: _webhook(patient))
    yield Check(DASHBOARD, lambda: _dashboard(patient))


async def _variables(patient: Patient) -> Findings:
    needed = [*writing(patient.configuration), *reading(patient.configuration)]
    missing: dict[str, list[Need]] = {}
    for need in needed:
        if not need.used(patient.environment):
            missing.setdefault(need.usual, []).append(need)
    for variable, needs in missing.items():
        purposes = ", ".join(dict.fromkeys(need.purpose for need in needs))
        only_others = all(need.variables == (ORCHESTRATOR_VARIABLE,) for need in needs) and own_tokens(patient)
        yield Standing.WARN if only_others else Standing.FAIL, f"Set {variable}: it {purposes}."
    if not missing:
        names = sorted({need.used(patient.environment) for need in needed})
        yield Standing.OK, f"All that are needed are set: {', '.join(names)}." if names else "None is needed."


async def _webhook(patient: Patient) -> Findings:
    if not [*webhook(patient.configuration)]:
        yield Standing.SKIP, "Not needed: events come from a queue."
        return
    secret, signing = patient.value(SECRET_VARIABLE), patient.value(SIGNING_VARIABLE)
    try:
        door = gate(time.time, secret, signing)
    except MissingSetting as error:
        yield Standing.FAIL, f"{SIGNING_VARIABLE} cannot be used: {error}"
        return
    if door.is_open:
        yield (
            Standing.FAIL,
            f"Set {SECRET_VARIABLE} to a long random text, and the webhook's secret token in GitLab to the same: "
            "without it anybody could send events.",
        )
    elif not door.signed and len(secret) < _SECRET_CHARS:
        yield Standing.WARN, f"{SECRET_VARIABLE} is short: use {_SECRET_CHARS} random characters or more."
    else:
        names = " and ".join(name for name in (SECRET_VARIABLE, SIGNING_VARIABLE) if patient.value(name))
        yield Standing.OK, f"Deliveries are checked with {names}; GitLab's webhook must have the same."


async def _dashboard(patient: Patient) -> Findings:
    token = patient.value(VARIABLE)
    if not token and not is_loopback(patient.host):
        yield Standing.WARN, f"Closed for everybody on {patient.host}: set {VARIABLE} to open it."
        return
    if not token and patient.value("KUBERNETES_SERVICE_HOST"):
        yield Standing.WARN, f"For this pod alone, where nobody sits: set {VARIABLE} to open it."
        return
    if not token:
        yield Standing.OK, f"For this machine alone; to open it elsewhere, or behind a proxy, set {VARIABLE}."
        return
    try:
        Access(token, local=False, now=time.time)
    except MissingSetting as error:
        yield Standing.FAIL, str(error)
        return
    yield Standing.OK, f"Whoever shows {VARIABLE} may look."
