"""Who watches the service: whether a collector takes traces, and whether bugs could be reported. Only where that is
wanted."""

import asyncio
from collections.abc import Iterator

from hummingbird.adapters.telemetry.endpoint import Endpoint, endpoint_of, header_secrets
from hummingbird.adapters.telemetry.registry import DSN_VARIABLE, check_sentry, trace_refusal
from hummingbird.assembly.doctor.finding import Check, Findings, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.assembly.secrets import secrets_of
from hummingbird.domain.errors import MissingSetting


def telemetry_checks(patient: Patient) -> Iterator[Check]:
    try:
        endpoint = endpoint_of(patient.environment, patient.settings.ca_bundle)
    except MissingSetting as error:
        sentence = str(error)
        yield Check("traces", lambda: _unusable(sentence))
    else:
        if endpoint is not None:
            yield Check("traces", lambda: _traces(patient, endpoint))
    if patient.value(DSN_VARIABLE):
        yield Check("sentry", lambda: _sentry(patient))


async def _unusable(sentence: str) -> Findings:
    yield Standing.FAIL, sentence


async def _traces(patient: Patient, endpoint: Endpoint) -> Findings:
    """An export without spans is sent, by the same code that sends the others."""
    secrets = secrets_of(patient.environment, header_secrets(patient.environment))
    refusal = await asyncio.to_thread(trace_refusal, endpoint, secrets)
    if refusal:
        yield Standing.FAIL, f"{endpoint.host} takes no traces: correct {endpoint.variable}, or see to it. {refusal}"
    else:
        yield Standing.OK, f"{endpoint.host} takes traces."


async def _sentry(patient: Patient) -> Findings:
    """Nothing is sent: somebody would be woken by it."""
    await asyncio.to_thread(check_sentry, patient.value(DSN_VARIABLE))
    yield Standing.OK, f"{DSN_VARIABLE} is well-formed; bugs will be reported there."
