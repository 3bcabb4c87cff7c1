"""Whether thumbs on notes can be read with the token that writes, and whether the webhook tells of them at once. A
figure on the dashboard hangs on it, and nothing else: what does not work is a warning."""

from collections.abc import Iterator
from functools import partial

from hummingbird.adapters.forge.self_check import SelfCheck
from hummingbird.assembly.doctor.finding import Check, Findings, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.config.needed import Need, projects
from hummingbird.config.tokens import orchestrator_variables
from hummingbird.domain.errors import CredentialRefused, ForgeMissing
from hummingbird.ports.forge import OrchestratorToken

EVENT = "emoji_events"


def vote_checks(patient: Patient) -> Iterator[Check]:
    for project in projects(patient.configuration):
        variable = Need(orchestrator_variables(project), "").used(patient.environment)
        if variable:
            yield Check("votes", partial(_votes, patient, project, variable))


async def _votes(patient: Patient, project: str, variable: str) -> Findings:
    token = OrchestratorToken(patient.value(variable))
    async with SelfCheck(patient.settings.gitlab_url, patient.settings.ca_bundle) as gitlab:
        try:
            tried = await gitlab.reactions(token, project)
        except (CredentialRefused, ForgeMissing):
            yield Standing.WARN, f"Reactions on notes of {project} cannot be read with {variable}: mend it first."
            return
        hooks = await gitlab.hooks(token, project)
    if not tried:
        yield Standing.SKIP, f"Not tried: {project} has no merge request yet that could have reactions."
    elif any(EVENT in hook.events for hook in hooks or ()):
        yield Standing.OK, f"Reactions on notes of {project} can be read, and its webhook tells of them at once."
    else:
        yield Standing.OK, f"Reactions on notes of {project} can be read."
