"""A configuration as it is, but pointed at a case's stand-ins: their addresses, their tokens, no store of anybody's.

Prompts, models, limits and prices stay what they are; they are what is tried. No model stands in for another, for then
nobody would know who was scored.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

from hummingbird.assembly.places import HOME_VARIABLE
from hummingbird.config.configuration import Configuration
from hummingbird.config.needed import SECRET_VARIABLE
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE
from hummingbird.config.unconfigured import READ_VARIABLE
from hummingbird.config.workflows import (
    DataSources,
    GitLabDeclared,
    KonfluxDeclared,
    Project,
    TestingFarmDeclared,
    Workflow,
)
from hummingbird.domain.errors import UsageFault
from hummingbird.lab.scene import Scene

KUBECONFIG_VARIABLE = "EVAL_KUBECONFIG"


def pointed(configuration: Configuration, scene: Scene, most_usd: Decimal | None = None) -> Configuration:
    """`most_usd`: no run may spend more than that, whatever the workflows say."""
    usual = configuration.settings.budgets
    workflows = {
        name: _pointed(workflow, scene, usual.usd_per_run, most_usd)
        for name, workflow in configuration.workflows.items()
    }
    changed = {
        "session_store": "",
        "s3_session_bucket": "",
        "gitlab_url": scene.url("gitlab"),
        "budgets": usual.model_copy(update={"usd_per_day": None}),  # what the service spends is its own
    }
    settings = configuration.settings.model_copy(update=changed)
    return replace(configuration, settings=settings, workflows=MappingProxyType(workflows))


def _pointed(workflow: Workflow, scene: Scene, usual: Decimal | None, most_usd: Decimal | None) -> Workflow:
    ceilings = [one for one in (workflow.budgets.usd_per_run or usual, most_usd) if one is not None]
    spending = {"usd_per_run": min(ceilings, default=None), "usd_per_day": None}
    changed = {
        "data_sources": _sources(scene),
        "projects": {"*": Project()},
        "fallback_models": (),
        "budgets": workflow.budgets.model_copy(update=spending),
    }
    return workflow.model_copy(update=changed)


def _sources(scene: Scene) -> DataSources:
    gitlab = GitLabDeclared(token_env=READ_VARIABLE)
    if not scene.case.files("konflux"):
        return DataSources(gitlab=gitlab)
    konflux = KonfluxDeclared(
        cluster_url=scene.cluster_url, kubeconfig_env=KUBECONFIG_VARIABLE, kubearchive_url=scene.url("kubearchive")
    )
    farm = TestingFarmDeclared(
        api_url=scene.url("testing_farm"), artifacts=(f"{scene.url('artifacts')}/",), private_addresses=True
    )
    return DataSources(gitlab=gitlab, konflux=konflux, testing_farm=farm)


def environment_of(environment: Mapping[str, str], scene: Scene, folder: Path) -> dict[str, str]:
    """Nothing of the real GitLab goes to the lab's."""
    kept = {name: value for name, value in environment.items() if not name.startswith(ORCHESTRATOR_VARIABLE)}
    kept.pop(SECRET_VARIABLE, None)
    return kept | {
        HOME_VARIABLE: str(folder),
        ORCHESTRATOR_VARIABLE: scene.write_token,
        READ_VARIABLE: scene.read_token,
        KUBECONFIG_VARIABLE: str(scene.kubeconfig(folder / "kubeconfig")),
    }


def workflow_for(configuration: Configuration, kind: str) -> str:
    """The first that such an event would begin with; reviews may begin by command alone. Raises UsageFault."""
    for name, workflow in configuration.workflows.items():
        reviews = workflow.trigger == "merge_request" or (workflow.inline_findings and workflow.trigger is None)
        if (kind == "merge_request" and reviews) or (kind == "pipeline" and workflow.trigger == "pipeline"):
            return name
    known = ", ".join(configuration.workflows) or "none"
    raise UsageFault(
        f"No workflow of {configuration.name} begins with a {kind}: name one with --workflow. There are: {known}."
    )
