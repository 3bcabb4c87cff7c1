"""Runs all checks side by side, each with a time limit, and reports them in their order with secrets masked.

The checks of the configuration and its variables are here too: they contact nobody.
"""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import click

from hummingbird.app.doctor import (
    AS_CONFIGURED,
    CheckFinding,
    CheckOutcomes,
    CheckStatus,
    DoctorCheck,
    DoctorContext,
)
from hummingbird.app.doctor.platform_checks import platform_checks, record_checks
from hummingbird.app.doctor.remote_checks import (
    model_checks,
    project_token_variables,
    read_token_checks,
    server_checks,
    source_checks,
    telemetry_checks,
    vote_checks,
    write_token_checks,
)
from hummingbird.app.environment_secrets import environment_secrets, tool_secret_values
from hummingbird.app.http_server import is_loopback
from hummingbird.app.sandboxes import SandboxChoice, choose_for_service
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE, Configuration
from hummingbird.config.document import ConfigFault
from hummingbird.config.env_requirements import (
    SECRET_VARIABLE,
    SIGNING_VARIABLE,
    EnvRequirement,
    read_token_requirements,
    webhook_requirements,
    write_token_requirements,
)
from hummingbird.config.loader import EMBEDDED_NAME, examine_config, find_config
from hummingbird.core.errors import HummingbirdError, MissingSetting
from hummingbird.core.limits import DOCTOR_CHECK_S, DOCTOR_CHECKS
from hummingbird.core.masking import Secrets
from hummingbird.dashboard.access import TOKEN_VARIABLE, DashboardAccess
from hummingbird.service.webhook import create_webhook_auth

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


def environment_checks(context: DoctorContext) -> Iterator[DoctorCheck]:
    yield DoctorCheck(VARIABLES, lambda: _check_variables(context))
    yield DoctorCheck(WEBHOOK, lambda: _check_webhook_secret(context))
    yield DoctorCheck(DASHBOARD, lambda: _check_dashboard(context))


async def _check_variables(context: DoctorContext) -> CheckOutcomes:
    needed = [*write_token_requirements(context.configuration), *read_token_requirements(context.configuration)]
    missing: dict[str, list[EnvRequirement]] = {}
    for need in needed:
        if not need.find_set_variable(context.environment):
            missing.setdefault(need.default_variable, []).append(need)
    for variable, needs in missing.items():
        purposes = ", ".join(dict.fromkeys(need.purpose for need in needs))
        only_others = all(need.variables == (ORCHESTRATOR_VARIABLE,) for need in needs) and project_token_variables(
            context
        )
        yield CheckStatus.WARN if only_others else CheckStatus.FAIL, f"Set {variable}: it {purposes}."
    if not missing:
        names = sorted({need.find_set_variable(context.environment) for need in needed})
        yield CheckStatus.OK, f"All that are needed are set: {', '.join(names)}." if names else "None is needed."


async def _check_webhook_secret(context: DoctorContext) -> CheckOutcomes:
    secret, signing = context.value(SECRET_VARIABLE), context.value(SIGNING_VARIABLE)
    if not (secret or signing or [*webhook_requirements(context.configuration)]):
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
        names = " and ".join(name for name in (SECRET_VARIABLE, SIGNING_VARIABLE) if context.value(name))
        yield CheckStatus.OK, f"Deliveries are checked with {names}; GitLab's webhook must have the same."


async def _check_dashboard(context: DoctorContext) -> CheckOutcomes:
    token = context.value(TOKEN_VARIABLE)
    if not token and not is_loopback(context.host):
        yield CheckStatus.WARN, f"Closed on {context.host}: set {TOKEN_VARIABLE} to open it."
        return
    if not token and context.value("KUBERNETES_SERVICE_HOST"):
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


_ALL_CHECKS = (
    *(environment_checks, server_checks, write_token_checks, read_token_checks, model_checks, platform_checks),
    *(record_checks, vote_checks, source_checks, telemetry_checks),
)


async def examine(
    path: Path | None,
    environment: Mapping[str, str],
    *,
    try_model: bool = False,
    chosen: SandboxChoice = AS_CONFIGURED,
    host: str = "127.0.0.1",
    check_s: float = DOCTOR_CHECK_S,
) -> AsyncGenerator[CheckFinding, None]:
    """Yield the findings of all checks.

    Without a `path`, the embedded defaults are checked. Only with `try_model`, questions are asked that cost money.
    """
    secrets = environment_secrets(environment)
    configuration, findings = check_config(path, environment)
    for finding in findings:
        yield _mask_finding(secrets, finding)
    if configuration is None:
        yield CheckFinding("everything else", CheckStatus.SKIP, "Not tried: fix the configuration first.")
        return
    secrets = environment_secrets(environment, tool_secret_values(configuration, environment))
    context = DoctorContext(configuration, environment, try_model, chosen, host)
    async for finding in run_checks([check for some in _ALL_CHECKS for check in some(context)], check_s):
        yield _mask_finding(secrets, finding)


async def run_checks(checks: Sequence[DoctorCheck], check_s: float) -> AsyncGenerator[CheckFinding, None]:
    """Run the checks, at most DOCTOR_CHECKS at a time, and yield their findings in order."""
    turns = asyncio.Semaphore(DOCTOR_CHECKS)
    tasks = [asyncio.create_task(_run_check(check, turns, check_s)) for check in checks]
    try:
        for task in tasks:
            for finding in await task:
                yield finding
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run_check(check: DoctorCheck, turns: asyncio.Semaphore, check_s: float) -> list[CheckFinding]:
    found: list[CheckFinding] = []
    async with turns:
        try:
            async with asyncio.timeout(check_s):
                async for standing, sentence in check.run():
                    found.append(CheckFinding(check.part, standing, sentence))
        except TimeoutError:
            sentence = f"It did not end within {check_s:g} seconds: check what blocks it."
            found.append(CheckFinding(check.part, CheckStatus.FAIL, sentence))
        except HummingbirdError as error:
            found.append(CheckFinding(check.part, CheckStatus.FAIL, str(error)))
    return found


def _mask_finding(secrets: Secrets, finding: CheckFinding) -> CheckFinding:
    return CheckFinding(finding.part, finding.standing, secrets.mask(finding.sentence))


# Output: one line per finding as soon as it is known, or one JSON document.


_COLOURS = {
    CheckStatus.OK: "green",
    CheckStatus.WARN: "yellow",
    CheckStatus.FAIL: "red",
    CheckStatus.SKIP: "bright_black",
}


def doctor_command(
    config: str | None,
    *,
    as_json: bool,
    try_model: bool,
    host: str,
    sandbox: str | None,
    context: str,
    namespace: str,
) -> int:
    path = find_config(config, os.environ, Path.cwd())
    chosen = choose_for_service(os.environ, sandbox or "", context, namespace)
    findings = asyncio.run(
        _collect_findings(path, _print_nothing if as_json else _print_finding, chosen, try_model=try_model, host=host)
    )
    counts = Counter(finding.standing for finding in findings)
    click.echo(_findings_json(findings) if as_json else f"\n{_summary_sentence(counts)}")
    return 1 if counts[CheckStatus.FAIL] else 0


async def _collect_findings(
    path: Path | None, tell: Callable[[CheckFinding], None], chosen: SandboxChoice, *, try_model: bool, host: str
) -> list[CheckFinding]:
    found: list[CheckFinding] = []
    async with aclosing(examine(path, os.environ, try_model=try_model, chosen=chosen, host=host)) as findings:
        async for finding in findings:
            tell(finding)
            found.append(finding)
    return found


def _print_finding(finding: CheckFinding) -> None:
    standing = click.style(f"{finding.standing:<4}", fg=_COLOURS[finding.standing])
    click.echo(f"{standing}  {finding.part}: {finding.sentence}")


def _print_nothing(finding: CheckFinding) -> None:
    """Print nothing: the JSON document is printed at the end."""


def _summary_sentence(counts: Counter[CheckStatus]) -> str:
    if counts[CheckStatus.FAIL]:
        return f"{_count_things(counts[CheckStatus.FAIL])} to fix before it works."
    if counts[CheckStatus.WARN]:
        return f"It works; {_count_things(counts[CheckStatus.WARN]).lower()} to look at."
    return "Everything works."


def _count_things(count: int) -> str:
    return "One thing" if count == 1 else f"{count} things"


def _findings_json(findings: list[CheckFinding]) -> str:
    checks = [{"part": one.part, "standing": one.standing, "sentence": one.sentence} for one in findings]
    return json.dumps({"ok": all(one.standing != CheckStatus.FAIL for one in findings), "checks": checks}, indent=2)
