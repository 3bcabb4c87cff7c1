"""What the environment may say where there is no configuration at all (G5): which GitLab, and the token that reads.

A configuration file says both itself; then neither variable means anything.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import ValidationError

from hummingbird.config.configuration import Written
from hummingbird.config.faults import WHOLE, Fault
from hummingbird.config.settings import Settings
from hummingbird.config.workflows import GitLabDeclared, Workflow

URL_VARIABLE = "GITLAB_URL"
READ_VARIABLE = "GITLAB_TOKEN_RO"


def with_environment(found: Written, environment: Mapping[str, str]) -> Written | Fault:
    """The embedded defaults, for the GitLab that the environment names."""
    url = environment.get(URL_VARIABLE, "").strip()
    try:
        settings = Settings(gitlab_url=url) if url else found.settings
    except ValidationError:
        return Fault((), WHOLE, f"expected {URL_VARIABLE} to be the address of a GitLab, like https://gitlab.com")
    workflows = found.workflows
    if environment.get(READ_VARIABLE, "").strip():
        workflows = MappingProxyType({name: _reading(workflow) for name, workflow in workflows.items()})
    return found.model_copy(update={"settings": settings, "workflows": workflows})


def _reading(workflow: Workflow) -> Workflow:
    sources = workflow.data_sources.model_copy(update={"gitlab": GitLabDeclared(token_env=READ_VARIABLE)})
    return workflow.model_copy(update={"data_sources": sources})
