"""All checks side by side, each with its time, told in their order. A secret in a sentence is masked, whoever put it
there."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from hummingbird.assembly.doctor.elsewhere import elsewhere_checks
from hummingbird.assembly.doctor.finding import Check, Finding, Standing
from hummingbird.assembly.doctor.gitlab_tokens import reading_checks, writing_checks
from hummingbird.assembly.doctor.models import model_checks
from hummingbird.assembly.doctor.patient import AS_CONFIGURED, Patient
from hummingbird.assembly.doctor.records import record_checks
from hummingbird.assembly.doctor.server import server_checks
from hummingbird.assembly.doctor.settings import environment_checks, examined
from hummingbird.assembly.doctor.telemetry import telemetry_checks
from hummingbird.assembly.doctor.votes import vote_checks
from hummingbird.assembly.doctor.workplace import place_checks
from hummingbird.assembly.sandboxes import Chosen
from hummingbird.assembly.secrets import secrets_of, tool_secrets
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.limits import DOCTOR_CHECK_S, DOCTOR_CHECKS
from hummingbird.domain.secrets import Secrets

_ALL = (
    *(environment_checks, server_checks, writing_checks, reading_checks, model_checks, place_checks),
    *(record_checks, vote_checks, elsewhere_checks, telemetry_checks),
)


async def examination(
    path: Path | None,
    environment: Mapping[str, str],
    *,
    try_model: bool = False,
    chosen: Chosen = AS_CONFIGURED,
    host: str = "127.0.0.1",
    check_s: float = DOCTOR_CHECK_S,
) -> AsyncGenerator[Finding, None]:
    """`path` None: the embedded defaults. Only with `try_model` anything is asked that costs money."""
    secrets = secrets_of(environment)
    configuration, findings = examined(path, environment)
    for finding in findings:
        yield _masked(secrets, finding)
    if configuration is None:
        yield Finding("everything else", Standing.SKIP, "Not tried: mend the configuration first.")
        return
    secrets = secrets_of(environment, tool_secrets(configuration, environment))
    patient = Patient(configuration, environment, try_model, chosen, host)
    async for finding in conducted([check for some in _ALL for check in some(patient)], check_s):
        yield _masked(secrets, finding)


async def conducted(checks: Sequence[Check], check_s: float) -> AsyncGenerator[Finding, None]:
    """All at once, as far as DOCTOR_CHECKS allows."""
    turns = asyncio.Semaphore(DOCTOR_CHECKS)
    tasks = [asyncio.create_task(_tried(check, turns, check_s)) for check in checks]
    try:
        for task in tasks:
            for finding in await task:
                yield finding
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _tried(check: Check, turns: asyncio.Semaphore, check_s: float) -> list[Finding]:
    found: list[Finding] = []
    async with turns:
        try:
            async with asyncio.timeout(check_s):
                async for standing, sentence in check.run():
                    found.append(Finding(check.part, standing, sentence))
        except TimeoutError:
            sentence = f"It did not come to an end within {check_s:g} seconds: see whether something holds it up."
            found.append(Finding(check.part, Standing.FAIL, sentence))
        except HummingbirdError as error:
            found.append(Finding(check.part, Standing.FAIL, str(error)))
    return found


def _masked(secrets: Secrets, finding: Finding) -> Finding:
    return Finding(finding.part, finding.standing, secrets.mask(finding.sentence))
