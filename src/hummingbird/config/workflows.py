"""The `workflows` section: what is done, for which projects, with which sources.

Holds names of variables, never what they hold.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hummingbird.config.defaults import NOTHING, default
from hummingbird.config.kinds import (
    Address,
    Cluster,
    Engine,
    Expressions,
    Line,
    Names,
    Part,
    ProjectPath,
    ProjectPaths,
    Server,
    Servers,
    Texts,
    Variable,
)
from hummingbird.config.settings import Budgets

DECLARED = BeforeValidator(lambda value: {} if value is None else value)  # `testing_farm:` alone declares it
Trigger = Literal["pipeline", "merge_request"]


class GitLabDeclared(Part):
    token_env: Variable = default("workflows.*.data_sources.gitlab.token_env")
    projects: ProjectPaths = default("workflows.*.data_sources.gitlab.projects")


class KonfluxDeclared(Part):
    cluster_url: Cluster = default("workflows.*.data_sources.konflux.cluster_url")
    kubeconfig_env: Variable = default("workflows.*.data_sources.konflux.kubeconfig_env")
    context: Line = default("workflows.*.data_sources.konflux.context")
    kubearchive_url: Server = default("workflows.*.data_sources.konflux.kubearchive_url")
    ui_url: Server = default("workflows.*.data_sources.konflux.ui_url")


class TestingFarmDeclared(Part):
    __test__ = False  # pytest would take it for a test

    token_env: Variable = default("workflows.*.data_sources.testing_farm.token_env")
    api_url: Server = default("workflows.*.data_sources.testing_farm.api_url")
    artifacts: Servers = default("workflows.*.data_sources.testing_farm.artifacts")
    private_addresses: bool = default("workflows.*.data_sources.testing_farm.private_addresses")


class DataSources(Part):
    """None: not declared, so the workflow does not have it (D1)."""

    gitlab: Annotated[GitLabDeclared | None, DECLARED] = None
    konflux: Annotated[KonfluxDeclared | None, DECLARED] = None
    testing_farm: Annotated[TestingFarmDeclared | None, DECLARED] = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)


class Tokens(Part):
    """Names of variables; Konflux has its credentials from its kubeconfig."""

    gitlab: Variable = default("workflows.*.projects.*.tokens.gitlab")
    testing_farm: Variable = default("workflows.*.projects.*.tokens.testing_farm")


class Project(Part):
    """What a project has of its own; None leaves it to the workflow."""

    max_runs_per_mr: Annotated[int, Field(ge=0)] | None = default("workflows.*.projects.*.max_runs_per_mr")
    internal_notes: bool | None = default("workflows.*.projects.*.internal_notes")
    tokens: Tokens = Field(default_factory=Tokens)


class Workflow(Part):
    """None leaves a value to the settings."""

    trigger: Trigger | None = default("workflows.*.trigger")
    description: Line = default("workflows.*.description")
    workflow_url: Address = default("workflows.*.workflow_url")
    prompt: Line = default("workflows.*.prompt", min_length=1)
    action: Literal["post_gitlab_note"] = default("workflows.*.action")
    model: Line | None = default("workflows.*.model")
    fallback_models: Texts | None = default("workflows.*.fallback_models")
    max_iterations: Annotated[int, Field(ge=1, le=10_000)] | None = default("workflows.*.max_iterations")
    context_limit: Annotated[int, Field(ge=1_000)] | None = default("workflows.*.context_limit")
    max_inline_size: Annotated[int, Field(ge=256)] | None = default("workflows.*.max_inline_size")
    max_runs_per_mr: Annotated[int, Field(ge=0)] | None = default("workflows.*.max_runs_per_mr")
    internal_notes: bool | None = default("workflows.*.internal_notes")
    context: Engine = default("workflows.*.context")
    nothing_found: Literal["line", "silence"] = default("workflows.*.nothing_found")
    inline_findings: bool = default("workflows.*.inline_findings")
    budgets: Budgets = Field(default_factory=Budgets)
    ignore_users: Expressions = default("workflows.*.ignore_users")
    ignore_branches: Expressions = default("workflows.*.ignore_branches")
    auto_resolve_on_push: bool = default("workflows.*.auto_resolve_on_push")
    auto_resolve_on_success: bool = default("workflows.*.auto_resolve_on_success")
    data_sources: DataSources = Field(default_factory=DataSources)
    projects: Names[ProjectPath, Project] = Field(
        default_factory=lambda: NOTHING,
        description="Path of a project → what it has of its own; * is every project that is not named.",
    )

    def entry(self, project: str) -> Project | None:
        """What the workflow says of a project; None if it is not for it. GitLab's paths ignore case."""
        wanted = project.casefold()
        named = (entry for path, entry in self.projects.items() if path.casefold() == wanted)
        return next(named, self.projects.get("*"))
