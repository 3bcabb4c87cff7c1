"""GitLab itself: whether it answers, and whether its clock and ours agree."""

import time
from collections.abc import Iterator

from hummingbird.adapters.forge.self_check import SelfCheck
from hummingbird.assembly.doctor.finding import Check, Findings, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.domain.limits import DOCTOR_SKEW_CAP_S, DOCTOR_SKEW_S


def server_checks(patient: Patient) -> Iterator[Check]:
    yield Check("gitlab", lambda: _reached(patient))


async def _reached(patient: Patient) -> Findings:
    url = patient.settings.gitlab_url
    async with SelfCheck(url, patient.settings.ca_bundle) as gitlab:
        reached = await gitlab.reached()
    yield Standing.OK, f"{url} answers."
    if reached.at is None:
        return
    skew = time.time() - reached.at
    direction = "ahead of" if skew > 0 else "behind"
    words = f"This machine's clock is {abs(skew):.0f} seconds {direction} GitLab's"
    if abs(skew) > DOCTOR_SKEW_CAP_S:
        yield Standing.FAIL, f"{words}, so signed webhooks are refused: let NTP set the clocks."
    elif abs(skew) > DOCTOR_SKEW_S:
        yield Standing.WARN, f"{words}: let NTP set the clocks."
    else:
        yield Standing.OK, "Both clocks agree."
