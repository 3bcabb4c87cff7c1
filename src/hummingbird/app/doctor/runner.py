"""Runs all checks side by side, each with a time limit, and reports them in their order. Masks secrets in all
sentences.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import click

from hummingbird.app.doctor.check import AS_CONFIGURED, CheckFinding, CheckStatus, DoctorCheck, DoctorContext
from hummingbird.app.doctor.config_checks import check_config, environment_checks
from hummingbird.app.doctor.gitlab_checks import read_token_checks, server_checks, vote_checks, write_token_checks
from hummingbird.app.doctor.platform_checks import platform_checks, record_checks
from hummingbird.app.doctor.remote_checks import model_checks, source_checks, telemetry_checks
from hummingbird.app.environment_secrets import environment_secrets, tool_secret_values
from hummingbird.app.sandboxes import SandboxChoice, choose_for_service
from hummingbird.config.loader import find_config
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.limits import DOCTOR_CHECK_S, DOCTOR_CHECKS
from hummingbird.core.masking import Secrets

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
    patient = DoctorContext(configuration, environment, try_model, chosen, host)
    async for finding in run_checks([check for some in _ALL_CHECKS for check in some(patient)], check_s):
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
